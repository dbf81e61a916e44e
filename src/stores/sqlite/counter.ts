/** The thread that counts in a database that another thread writes. */

import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { COUNT_LISTED } from '../deliveries.ts'
import type { Count } from './count.ts'
import { countAll } from './counts.ts'

const { path, what } = workerData as Count
const database = new DatabaseSync(path, { readOnly: true, timeout: 1_000 })
// All of it as of one moment. Short, since the log cannot be shortened meanwhile.
database.exec('begin')
const counted = what === 'listed' ? database.prepare(COUNT_LISTED).get()?.listed : countAll(database, what.now)
database.close()
parentPort?.postMessage(counted)
