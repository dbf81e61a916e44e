/**
 * Receives the events of Waitlist: verifies, remembers each one once, answers quickly.
 *
 *   npm install standardwebhooks
 *   WEBHOOK_SECRET=whsec_… PORT=9090 node receiver.mjs
 *
 * What arrived is in the table `event` of received.db. Do your own work from there, or where it says so below.
 */
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { Webhook } from 'standardwebhooks'

const { WEBHOOK_SECRET, PORT = '9090' } = process.env
if (!WEBHOOK_SECRET) {
  console.error('WEBHOOK_SECRET is missing: take the one that Waitlist signs with.')
  process.exit(1)
}
const webhook = new Webhook(WEBHOOK_SECRET)

/** Bytes; an event has less than 2 KiB. */
const LARGEST_BODY = 16_384

const database = new DatabaseSync('received.db')
database.exec('create table if not exists event (id text primary key, type text not null, data text not null) strict')
const remember = database.prepare('insert into event (id, type, data) values (?, ?, ?) on conflict do nothing')

const server = createServer({ requestTimeout: 10_000 }, async (request, response) => {
  let status = 500
  try {
    status = await receive(request)
  } catch (error) {
    console.error(error) // such as a full disk: 500, so it is sent again
  }
  response.writeHead(status).end()
})

async function receive(request) {
  if (request.method !== 'POST') return 405
  const body = await bodyOf(request)
  if (body === null) return 413
  let event
  try {
    // Compares in constant time, and refuses what was signed more than five minutes ago. It needs the very bytes.
    event = webhook.verify(body, request.headers)
  } catch {
    return 401
  }
  // New types may come; `waitlist.check` comes when somebody tries the settings. Neither is a mistake.
  if (event.type === 'waitlist.check') return 204

  // The same event may come again, with the same id. The row is on disk before the answer leaves.
  const { changes } = remember.run(request.headers['webhook-id'], event.type, JSON.stringify(event.data))
  if (changes > 0) {
    // Your own work: quick, or later from the table. Names and addresses are better kept out of the log.
    console.log(`received ${request.headers['webhook-id']}`)
  }
  return 204
}

/** Null: too large. What is too much is read, so that the sender gets its answer, and not kept. */
async function bodyOf(request) {
  const chunks = []
  let length = 0
  for await (const chunk of request) {
    length += chunk.length
    if (length <= LARGEST_BODY) chunks.push(chunk)
  }
  return length <= LARGEST_BODY ? Buffer.concat(chunks) : null
}

server.listen(Number(PORT), 'localhost', () => {
  console.log(`receiving at http://localhost:${server.address().port}`)
})
