/** The limits of the server. Times are in milliseconds, sizes in bytes. */

/** Both values with every character escaped are under 3 KiB; the rest is for white space and members that we ignore. */
export const BODY_LIMIT = 16 * 1024

/** Slow senders are cut off. */
export const HEADERS_TIMEOUT = 10_000
export const REQUEST_TIMEOUT = 15_000
/** How often Node checks both. Its default of 30 s would enforce them late. */
export const TIMEOUT_CHECK = 2_000
/** Longer than a load balancer's (usually 60 s), so that we never close a connection that it is about to use. */
export const KEEP_ALIVE_TIMEOUT = 75_000
/** A client that has not read its answer by then is cut off. */
export const UNREAD_TIMEOUT = 60_000
/** How long we go on reading after the last answer of a connection. */
export const LINGER = 2_000
export const TLS_HANDSHAKE_TIMEOUT = 10_000

export const HEADER_BYTES = 8_192
export const HEADER_COUNT = 64
export const CONNECTIONS = 10_000
/** Enough for all who share one IPv4 address, since those that are idle make room. Sixteen clients are needed to take all. */
export const CONNECTIONS_OF_CLIENT = CONNECTIONS / 16

/** Answers that wait for their readers, and requests behind them, in the whole process: all, and once the oldest has stalled. */
export const UNREAD_BYTES = 32 * 1024 * 1024
export const STALLED_BYTES = 8 * 1024 * 1024
/** Milliseconds. A batch of answers, all sent at once, is taken within less. */
export const STALLED_AFTER = 100
/** What a response holds besides its own bytes, and what a parsed request holds, measured. */
export const RESPONSE_BYTES = 4 * 1024
export const REQUEST_BYTES = 4 * 1024

/** Challenges that are being made at once, in the whole process; each takes some milliseconds of a core. */
export const ISSUING = 64

/** How long the result of a health check is used, and how long a check may take. */
export const HEALTH_FRESH = 1_000
export const HEALTH_TIMEOUT = 1_000
