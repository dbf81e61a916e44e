import { fdatasync } from 'node:fs'
import { StoreUnavailable } from '../database.ts'

/**
 * The one place where the process waits for its disk. With `synchronous=NORMAL` a commit writes the log without syncing it
 * (https://sqlite.org/pragma.html#pragma_synchronous), so whatever leaves the process because of a commit, or because of a row
 * that was read, waits here for a sync that began after that commit. One sync serves all who came during the last one.
 */
export interface Sync {
  /** Notes a commit, which is not on disk yet. */
  committed(): void
  /** Resolves when everything that was committed before the call is on disk. */
  wait(): Promise<void>
}

interface Waiter {
  readonly commits: number
  readonly resolve: () => void
  readonly reject: (reason: Error) => void
}

/** `verify` throws if the files are no longer where they were. After a failure nobody is answered any more. */
export function logSync(descriptor: number, verify: () => void, failed: (error: Error) => void): Sync {
  let commits = 0
  let synced = 0
  let isRunning = false
  let failure: StoreUnavailable | undefined
  const waiting: Waiter[] = []

  function run(): void {
    isRunning = true
    const covered = commits
    fdatasync(descriptor, error => {
      try {
        if (error !== null) throw error
        verify()
      } catch (reason) {
        failed(reason as Error)
        failure = new StoreUnavailable((reason as Error).message)
        for (const { reject } of waiting) reject(failure)
        return
      }
      isRunning = false
      synced = covered
      const done = waiting.findIndex(waiter => waiter.commits > covered)
      const ready = waiting.splice(0, done === -1 ? waiting.length : done)
      if (waiting.length > 0) run()
      for (const { resolve } of ready) resolve()
    })
  }

  return {
    committed() {
      commits++
    },
    wait() {
      if (failure !== undefined) return Promise.reject(failure)
      if (synced === commits) return Promise.resolve()
      return new Promise((resolve, reject) => {
        waiting.push({ commits, resolve, reject })
        if (!isRunning) run()
      })
    },
  }
}
