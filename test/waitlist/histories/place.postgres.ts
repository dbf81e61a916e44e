import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { storeBounds } from '../../../src/stores/batch.ts'
import { postgresOperator } from '../../../src/stores/postgres/operator.ts'
import { postgresStore } from '../../../src/stores/postgres/store.ts'
import { type PostgresServer, startPostgres } from '../../harness/postgres.ts'
import { keptLog } from '../log.ts'
import type { Pending, Place, StoredContact } from './place.ts'
import { RECEIVER } from './receiver.ts'
import { automationOf, type VendorName } from './vendor.ts'

const MILLISECONDS = '(extract(epoch from due_at) * 1000)::float8'

/** A server for all, since a history that fails needs a new place for each step of making it shorter. */
let started: Promise<PostgresServer> | undefined

export const endPostgres = async () => (await started)?.remove()

/** The same as `openPlace`, in a database of its own on PostgreSQL. */
export async function openPostgresPlace(clock: () => number, first: VendorName): Promise<Place> {
  started ??= startPostgres({ settings: { fsync: 'off' } })
  const server = await started
  const url = await server.database()
  // How slow the machine is tells nothing here.
  const bounds = { ...storeBounds, timeout: 600_000 }
  const parts = { url, bounds, eventName: 'waitlist.joined', clock }
  const open = (provider: VendorName) =>
    postgresStore({ ...parts, provider, destinations: [automationOf(provider), RECEIVER], log: keptLog().log })
  let provider = first
  let store = await open(provider)
  const operator = postgresOperator(url)
  const { read, close } = readerOf(url)
  let page = 0

  async function reopen(next: VendorName): Promise<void> {
    provider = next
    await store.close()
    store = await open(provider)
  }

  return {
    store: () => store,
    async turnThePage() {
      if (provider !== first) await reopen(first)
      page = read<{ number: number }>('select coalesce(max(number), 0)::int as number from delivery')[0]!.number
    },
    reopen,
    contacts: email =>
      read<StoredContact>(
        'select id, state, (event_at is not null)::int as events,' +
          ' (select count(*)::int from delivery where delivery.contact = contact.number) as deliveries' +
          ' from contact where email_key = $1',
        email,
      ),
    pending: () =>
      read<Pending>(
        `select id, token is not null as leased, attempts, ${MILLISECONDS} as due from delivery` +
          " join contact on contact.number = contact where contact.state = 'pending' and destination = $1",
        provider,
      ),
    isLeased: (email, now) =>
      read(
        'select 1 from delivery join contact on contact.number = contact' +
          ` where email_key = $1 and token is not null and ${MILLISECONDS} > $2 and destination = $3`,
        email,
        now,
        provider,
      ).length > 0,
    nextDue: () =>
      read<{ due: number | null }>(
        `select min(${MILLISECONDS}) as due from delivery join contact on contact.number = contact` +
          " where delivery.state = 'waiting' and contact.state = 'listed'",
      )[0]!.due,
    abandoned: () =>
      read(
        'select delivery.number::int, destination, email_key as email from delivery join contact' +
          " on contact.number = delivery.contact where delivery.state = 'abandoned' and delivery.number > $1",
        page,
      ),
    replay: async some => void (await operator.replay({ numbers: some.map(({ number }) => number) })),
    replayAll: async destination => void (await operator.replay({ abandoned: true, destination })),
    async close() {
      close()
      await store.close()
    },
  }
}

/** Reads at once, as those who look into a file do: another thread asks while this one waits. */
function readerOf(url: string) {
  const { port1, port2 } = new MessageChannel()
  const done = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(READER, { eval: true, workerData: { url, port: port2, done }, transferList: [port2] })
  worker.unref()
  return {
    read<Row>(text: string, ...values: readonly unknown[]): Row[] {
      Atomics.store(done, 0, 0)
      port1.postMessage({ text, values })
      Atomics.wait(done, 0, 0)
      const { rows, error } = receiveMessageOnPort(port1)!.message
      if (error !== undefined) throw new Error(error)
      return rows
    },
    close: () => void worker.terminate(),
  }
}

const READER = `
const { workerData: { url, port, done } } = require('node:worker_threads')
const pg = require('pg')
const client = new pg.Client(url)
client.on('error', () => {})
const connected = client.connect()
port.on('message', async query => {
  const answer = await connected.then(() => client.query(query)).then(({ rows }) => ({ rows }), error => ({ error: String(error) }))
  port.postMessage(answer)
  Atomics.store(done, 0, 1)
  Atomics.notify(done, 0)
})`
