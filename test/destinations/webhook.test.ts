import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { webhook } from '../../src/destinations/webhook.ts'
import type { DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import { destinationContract, joined } from '../contracts/destination.ts'
import { type Received, type Said, startReceiver } from '../harness/receiver.ts'

const secretOf = (text: string) => `whsec_${Buffer.from(text).toString('base64')}`
const newSecret = secretOf('the new one of thirty-two bytes.')
const oldSecret = secretOf('the old one of 24 bytes.')

const opened = (test: Pick<TestContext, 'after'>, url: string, secrets = [newSecret]) => {
  const destination = webhook({ url, secrets })
  test.after(destination.close)
  return destination
}

destinationContract({
  name: 'the webhook',
  open: (url, test) => opened(test, `${url}/hooks/waitlist?key=1`),
  receiver: () => () => ({ status: 204 }),
  telling: ({ headers: { 'webhook-id': id } }) => (id === undefined ? {} : { id }),
  can: { gone: true, statusAlone: true },
  secrets: [newSecret],
})

const never = new AbortController().signal
const verified = (secret: string, { text, headers }: Received) => new Webhook(secret).verify(text, { ...headers })

/** What the webhook makes of one answer. */
async function toldBy(t: TestContext, said: Said): Promise<DeliveryResult> {
  const { url } = await startReceiver(t, () => said)
  return opened(t, url).deliver(joined(), never)
}

describe('what the webhook sends', () => {
  test('receivers drop repetitions, so it may repeat for ever; the numbers are those of docs/events.md', t => {
    const { repeatable, timeout, concurrency } = opened(t, 'http://127.0.0.1:9/')
    assert.deepEqual({ repeatable, timeout, concurrency }, { repeatable: Infinity, timeout: 15_000, concurrency: 16 })
  })

  test('the payload is this text, posted as JSON to the address with its path and query', async t => {
    const { url, received } = await startReceiver(t, () => ({ status: 200 }))
    const contact = { name: 'Zoë "Z" 李', email: 'Zoe+1@Example.com', createdAt: new Date('2025-07-18T09:29:59.000Z') }
    await opened(t, `${url}/hooks/a%20b?token=x&y=%26`).deliver(joined(1, contact), never)
    const [{ method, path, query, headers, text }] = received as [Received]
    assert.deepEqual([method, path, query], ['POST', '/hooks/a b', { token: 'x', y: '&' }])
    assert.equal(headers['content-type'], 'application/json')
    assert.equal(
      text,
      '{"type":"waitlist.joined","timestamp":"2025-07-18T09:30:00.123Z","data":' +
        '{"id":"01981d4f-3c00-7c4e-9d0a-000000000001","name":"Zoë \\"Z\\" 李","email":"Zoe+1@Example.com",' +
        '"createdAt":"2025-07-18T09:29:59.000Z"}}',
    )
  })

  test('what is known of the source is its last member', async t => {
    const { url, received } = await startReceiver(t, () => ({ status: 200 }))
    await opened(t, url).deliver(joined(1, { source: { utm_source: 'Zoë "Z"', ref: 'a/b' } }), never)
    assert.match(received[0]!.text, /"createdAt":"[^"]+","source":\{"utm_source":"Zoë \\"Z\\"","ref":"a\/b"\}\}\}$/)
  })

  // Computed without this code: printf '%s' "$id.$timestamp.$body" | openssl dgst -sha256 -mac HMAC -macopt hexkey:… -binary | base64
  test('a known event at a known moment has a known signature', async t => {
    const { url, received } = await startReceiver(t, () => ({ status: 200 }))
    t.mock.timers.enable({ apis: ['Date'], now: new Date('2025-07-18T09:30:01.999Z') })
    await opened(t, url, [secretOf('the new one of thirty-two bytes.')]).deliver(joined(), never)
    const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = received[0]!.headers
    assert.equal(id, 'evt_01981d4f-3c00-7c4e-9d0a-000000000000')
    assert.equal(timestamp, '1752831001')
    assert.equal(signature, 'v1,j2OsrlWq+OEyB4GPc1OTPUxeVv7hBxNvV3vHdPvdjWo=')
  })

  test('two secrets sign, the new one first, and receivers with either verify; with another one none does', async t => {
    const { url, received } = await startReceiver(t, () => ({ status: 200 }))
    await opened(t, url, [newSecret, oldSecret]).deliver(joined(), never)
    await opened(t, url, [newSecret]).deliver(joined(), never)
    const [both, one] = received as [Received, Received]
    const [first, second, ...others] = both.headers['webhook-signature']!.split(' ')
    const withOnly = (signature: string) => ({
      ...both,
      headers: { ...both.headers, 'webhook-signature': signature },
    })
    assert.deepEqual(others, [])
    for (const secret of [newSecret, oldSecret]) assert.ok(verified(secret, both))
    assert.ok(verified(newSecret, withOnly(first!)) && verified(oldSecret, withOnly(second!)))
    assert.ok(verified(newSecret, one))
    assert.throws(() => verified(oldSecret, one), /No matching signature/)
    assert.throws(() => verified(secretOf('somebody else, of 24 bytes'), both), /No matching signature/)
  })

  test('each attempt is signed at its own moment, under the same id', async t => {
    const { url, received } = await startReceiver(t, () => ({ status: 500 }))
    const destination = opened(t, url)
    for (const now of [1_752_831_000_000, 1_752_831_305_000]) {
      t.mock.timers.enable({ apis: ['Date'], now })
      await destination.deliver(joined(), never)
      assert.ok(verified(newSecret, received.at(-1)!))
      t.mock.timers.reset()
    }
    const [first, second] = received.map(({ headers }) => headers)
    assert.deepEqual([first!['webhook-timestamp'], second!['webhook-timestamp']], ['1752831000', '1752831305'])
    assert.equal(first!['webhook-id'], second!['webhook-id'])
    assert.notEqual(first!['webhook-signature'], second!['webhook-signature'])
  })

  test('every name and address arrives as it is, and verifies', async t => {
    const { url, received } = await startReceiver(t, () => ({ status: 204 }))
    const destination = opened(t, url, [newSecret, oldSecret])
    const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 100 })
    const address = fc.oneof(fc.emailAddress(), fc.string({ maxLength: 255 }))
    await fc.assert(
      fc.asyncProperty(text, address, async (name, email) => {
        assert.deepEqual(await destination.deliver(joined(2, { name, email }), never), { is: 'delivered' })
        const { data } = verified(newSecret, received.at(-1)!) as { data: { name: string; email: string } }
        assert.deepEqual([data.name, data.email], [name, email])
        verified(oldSecret, received.at(-1)!)
      }),
      { numRuns: 300 },
    )
  })
})

describe('what the webhook makes of an answer', () => {
  for (const said of [
    { status: 200, body: 'OK' },
    { status: 299 },
    { status: 200, headers: { 'content-length': '7', 'content-type': 'text/plain' }, body: 'no JSON' },
  ]) {
    test(`${said.status} with ${JSON.stringify(said.body)?.slice(0, 20) ?? 'nothing'} is delivered`, async t => {
      assert.deepEqual(await toldBy(t, said), { is: 'delivered' })
    })
  }

  test('an answer that repeats the address does not bring it into the log', async t => {
    const { url } = await startReceiver(t, ({ path, query }) => ({
      status: 404,
      body: `Cannot POST ${path} ${query.key}`,
    }))
    const outcome = await opened(t, `${url}/catch/0123456789ab?key=abcdef012345`).deliver(joined(), never)
    assert.deepEqual(outcome, {
      is: 'misconfigured',
      why: 'call the webhook: answered with 404 (Cannot POST /catch/… …)',
    })
  })
})

describe('trying the webhook', () => {
  test('it sends a signed message of the type waitlist.check, under an id that is new each time', async t => {
    const { url, received } = await startReceiver(t, () => ({ status: 204 }))
    const destination = opened(t, `${url}/hook?x=1`)
    assert.equal(await destination.check(never), null)
    assert.equal(await destination.check(never), null)
    for (const one of received) {
      const { type, timestamp, data } = verified(newSecret, one) as Record<string, string>
      assert.deepEqual([one.path, one.query, type, data], ['/hook', { x: '1' }, 'waitlist.check', {}])
      assert.equal(new Date(timestamp!).toISOString(), timestamp)
      assert.match(one.headers['webhook-id']!, /^check_[0-9a-f-]{36}$/)
    }
    assert.equal(new Set(received.map(({ headers }) => headers['webhook-id'])).size, 2)
  })

  test('a receiver that is gone is told to the operator, like one that fails', async t => {
    for (const [status, is] of [
      [410, 'misconfigured'],
      [500, 'unclear'],
    ] as const) {
      const { url } = await startReceiver(t, () => ({ status }))
      assert.equal((await opened(t, url).check(never))?.is, is)
    }
  })

  test('it ends when the process stops', async t => {
    const { url, arrived } = await startReceiver(t, () => () => {})
    const stop = new AbortController()
    const outcome = opened(t, url).check(stop.signal)
    await arrived(1)
    stop.abort()
    assert.equal((await outcome)?.is, 'unclear')
  })
})
