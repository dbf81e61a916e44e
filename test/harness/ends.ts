import { after } from 'node:test'

/** Milliseconds in which a file's process ends by itself once its tests are over, its hooks included. */
const SOON = 60_000

// Loaded before each file (`--import`). What a failed test leaves open would keep the process alive, and the run with it.
after(() =>
  setTimeout(() => {
    process.stderr.write(`its tests are over, but it goes on: ${process.getActiveResourcesInfo()}\n`)
    process.exit(1)
  }, SOON).unref(),
)
