import { after } from 'node:test'

/** Milliseconds in which a file's process ends by itself once its tests are over, its hooks included. */
const SOON = 60_000

// Loaded before each file (`--import`). What a failed test leaves open would keep the process alive, and the run with it.
after(() =>
  setTimeout(() => {
    process.stderr.write(`the tests are over, but the process is kept alive by ${process.getActiveResourcesInfo()}\n`)
    process.exit(1)
  }, SOON).unref(),
)
