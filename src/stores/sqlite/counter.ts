/** The thread that counts in a database that another thread writes. */

import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { countingOn } from '../upkeep.ts'
import { sqliteSql } from './sql.ts'

export interface CounterData {
  readonly path: string
  readonly what: 'countListed' | 'counts'
  /** Milliseconds since 1970. */
  readonly now: number
}

const { path, what, now } = workerData as CounterData
const database = new DatabaseSync(path, { readOnly: true, timeout: 1_000 })
// A snapshot is short, since the log cannot be shortened meanwhile.
const counted = await countingOn(sqliteSql(database), () => new Date(now))[what]()
database.close()
parentPort?.postMessage(counted)
