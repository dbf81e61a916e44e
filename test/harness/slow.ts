/**
 * With WAITLIST_SLOW_TESTS, as `.ci/run` sets it for the files that read this, what `npm test` does a few times is done
 * many times, and what waits for minutes is waited for.
 */
export const isSlow = process.env.WAITLIST_SLOW_TESTS !== undefined
