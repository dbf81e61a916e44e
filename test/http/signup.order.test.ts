import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BODY_LIMIT } from '../../src/http/wire/limits.ts'
import * as refusals from '../../src/http/wire/refusals.ts'
import { assertRefused, clientOf } from '../harness/client.ts'
import { openTestServer } from '../harness/server.ts'

/** A request for a signup: each thing that can be wrong with it has its own place here, so that two can be combined. */
const good = {
  path: '/api/waitlist',
  method: 'POST',
  client: '192.0.2.1',
  coding: 'identity',
  type: 'application/json',
  /** The body is padded to this size. */
  size: 0,
  /** A byte at its end, or none. */
  spoilt: [] as number[],
  /** Text after the JSON value. */
  after: '',
  inArray: false,
  name: 'Ada' as string | undefined,
  email: 'ada@example.com',
}
type Draft = typeof good

const EXHAUSTED = '198.51.100.7'

/** Everything that can be wrong with one request, in the order in which it is looked at. */
const faults: readonly [what: string, fault: Partial<Draft>, status: number, sentence?: string][] = [
  ['an unknown path', { path: '/api/nothing' }, 404, refusals.notFound.error],
  ['a method that is not allowed', { method: 'PUT' }, 405],
  ['too many attempts', { client: EXHAUSTED }, 429],
  ['a compressed body', { coding: 'gzip' }, 415, refusals.encoded.error],
  ['a body of another type', { type: 'text/plain' }, 415, refusals.notJson.error],
  ['a body that is too large', { size: BODY_LIMIT + 1 }, 413, refusals.tooLarge.error],
  ['a body that is not UTF-8', { spoilt: [0xff] }, 400, refusals.notUtf8.error],
  ['a body that is no JSON', { after: 'x' }, 400, refusals.malformedJson.error],
  ['a body that is no object', { inArray: true }, 400, refusals.notAnObject.error],
  ['no name', { name: undefined }, 400, 'name is required'],
  ['a malformed email', { email: 'ada' }, 400, 'email must be a valid email address'],
  ['a store that is full', {}, 500, refusals.unavailable.error],
]

function bytesOf({ name, email, inArray, after, size, spoilt }: Draft): Uint8Array<ArrayBuffer> {
  const signup = JSON.stringify({ name, email })
  const text = (inArray ? `[${signup}]` : signup) + after
  return new Uint8Array([...Buffer.from(text.padEnd(size)), ...spoilt])
}

for (const transfer of ['by Content-Length', 'chunked'] as const) {
  test(`of two things that are wrong the earlier one is answered, ${transfer}`, async t => {
    // The last fault holds for every request: the store never has room.
    const env = { TRUST_PROXY: '1', RATE_LIMIT: '1' }
    const { request } = await clientOf(await openTestServer(t, { minimumFree: Number.MAX_SAFE_INTEGER }, env))
    let clients = 0

    const answerTo = (draft: Draft) => {
      const { path, method, client, coding, type } = draft
      const bytes = bytesOf(draft)
      const body = transfer === 'chunked' ? new Blob([bytes]).stream() : bytes
      const headers = { 'content-encoding': coding, 'content-type': type, 'x-forwarded-for': client }
      return request(path, { method, headers, body, duplex: 'half' } as RequestInit)
    }

    await answerTo({ ...good, client: EXHAUSTED })
    for (const [position, [what, fault, status, sentence]] of faults.entries()) {
      for (const [also, another] of faults.slice(position)) {
        await t.test(`${what} comes before ${also}`, async () => {
          // A client of its own for each request, so that only those meet the limit that are meant to.
          const client = `10.0.${clients >> 8}.${clients++ & 255}`
          assertRefused(await answerTo({ ...good, client, ...another, ...fault }), status, sentence)
        })
      }
    }
    assert.equal((await request('/api/waitlist')).status, 200)
  })
}
