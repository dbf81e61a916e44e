import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { isSecret } from '../../src/config/settings.ts'
import { webhook } from '../../src/notify/webhook.ts'
import { assertDiscreet, invited, joined } from '../delivery/events.ts'
import { type Deed, type Received, reset, type Said, say, startReceiver } from '../harness/receiver.ts'

const running = new AbortController().signal
const newSecret = (bytes = 32) => `whsec_${randomBytes(bytes).toString('base64')}`
const PATH = '/hooks/aVeryLongTokenInThePath?key=aVeryLongTokenInTheQuery'
const tokens = ['aVeryLongTokenInThePath', 'aVeryLongTokenInTheQuery']

/** Says no and repeats all that it was told, as chatty servers do. */
const refuse =
  (status: number, headers: Record<string, string> = {}): Deed =>
  (response, received) =>
    say({ status, headers, body: { message: `${received.text} ${PATH} ${Object.values(received.headers)}` } })(
      response,
      received,
    )

test('an event is a Standard Webhooks message, signed with each secret, the same on every attempt', async t => {
  const secrets = [newSecret(), newSecret()]
  const receiver = await startReceiver(t, () => ({ status: 204 }))
  const { deliver, check } = webhook({ url: receiver.url + PATH, secrets })
  const event = joined(1, { name: 'Zoë "Z" 李', source: { utm_source: 'hn' } })
  for (const each of [event, event, invited(2)]) assert.deepEqual(await deliver(each, running), { is: 'delivered' })
  assert.equal(await check(running), null)
  const [first, second, invitation, checked] = receiver.received as [Received, Received, Received, Received]
  for (const { method, headers, text } of receiver.received) {
    assert.deepEqual([method, headers['content-type']], ['POST', 'application/json'])
    for (const secret of secrets) assert.doesNotThrow(() => new Webhook(secret).verify(text, headers))
    assert.throws(() => new Webhook(newSecret()).verify(text, headers))
  }
  const { id, name, email, createdAt, source } = event.contact
  const data = { id, name, email, createdAt: createdAt.toISOString(), source }
  assert.deepEqual(first.json, { type: 'waitlist.joined', timestamp: event.at.toISOString(), data })
  assert.deepEqual([first.headers['webhook-id'], first.text], [event.id, second.text])
  assert.equal(second.headers['webhook-id'], event.id)
  assert.deepEqual([invitation.json.type, invitation.json.data.code], ['waitlist.invited', invited().code])
  assert.deepEqual([checked.json.type, checked.json.data], ['waitlist.check', {}])
})

describe('what an answer means, after one attempt', { concurrency: 8 }, () => {
  const rows: readonly (readonly [what: string, Deed | Said, is: string, retryAfter?: number])[] = [
    ['200 with anything', say({ status: 200, body: '<html>' }), 'delivered'],
    ['400', refuse(400), 'refused'],
    ['404', refuse(404), 'misconfigured'],
    ['429', refuse(429, { 'retry-after': '7' }), 'rate limited', 7_000],
    ['a reset', reset, 'in doubt'],
  ]
  for (const [what, deed, is, retryAfter] of rows) {
    test(`${what} is ${is}`, async t => {
      const secret = newSecret()
      const receiver = await startReceiver(t, () => deed)
      const result = await webhook({ url: receiver.url + PATH, secrets: [secret] }).deliver(joined(), running)
      assert.equal(result.is, is, JSON.stringify(result))
      assert.equal('retryAfter' in result ? result.retryAfter : undefined, retryAfter)
      assert.equal(receiver.received.length, 1)
      assertDiscreet(result, [...tokens, secret])
    })
  }
})

test('a secret is whsec_ and 24 to 64 bytes in base64', () => {
  for (let bytes = 1; bytes <= 80; bytes++)
    assert.equal(isSecret(newSecret(bytes)), bytes >= 24 && bytes <= 64, `${bytes}`)
  const good = `whsec_${Buffer.alloc(32, 255).toString('base64')}`
  for (const bad of ['', good.slice(6), ` ${good}`, `${good}\n`, good.replace('=', ''), `${good}=`])
    assert.equal(isSecret(bad), false, JSON.stringify(bad))
})
