/** The thread that counts the listed contacts of a database that another thread writes. */

import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { COUNT_LISTED } from '../deliveries.ts'

const database = new DatabaseSync(workerData as string, { readOnly: true, timeout: 1_000 })
const listed = database.prepare(COUNT_LISTED).get()?.listed
database.close()
parentPort?.postMessage(listed)
