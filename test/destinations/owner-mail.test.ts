import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import PostalMime from 'postal-mime'
import { openDestinations } from '../../src/app/adapters.ts'
import { readConfig } from '../../src/config/config.ts'
import { openChannel } from '../../src/notify/cursor.ts'
import { digests } from '../../src/waitlist/delivery/digest.ts'
import type { Alert, DeliveryResult } from '../../src/waitlist/ports/destination.ts'
import { assertDiscreet, joined as joinedEvent } from '../contracts/destination.ts'
import {
  type Deed,
  type MailServer,
  type MailServerOptions,
  type Moment,
  type ReceivedMail,
  reset,
  say,
  startMailServer,
} from '../harness/mail-server.ts'
import { stage } from '../waitlist/scene.ts'
import { joined } from './chat.ts'

const running = new AbortController().signal
const login = { user: 'postmaster', password: 'correct horse' }
const to = { name: 'Zebulon Quixote', address: 'Zebulon.Quixote@acme.example' }
const HOUR = 3_600_000

/** The owner's mailbox, and the welcome mails, as the settings say. */
async function opened(t: TestContext, { host, port }: MailServer, more: Record<string, string> = {}) {
  const result = await readConfig({
    SMTP_URL: `smtp://${login.user}:${encodeURIComponent(login.password)}@${host}:${port}`,
    ...{ MAIL_FROM: 'Acme <hello@acme.example>', OWNER_MAIL: `${to.name} <${to.address}>` },
    ...{ MAIL_RATE: '6000', CHAT_NAMES: 'true', ...more },
  })
  assert.ok('config' in result, JSON.stringify(result))
  const { own, channels, close } = await openDestinations(result.config)
  t.after(close)
  return { channel: channels[0]!, welcome: own[0]! }
}

const started = (t: TestContext, options: MailServerOptions = {}) => startMailServer(t, { login, ...options })
const parsed = ({ source }: ReceivedMail) => PostalMime.parse(source)
const subjects = async ({ mails }: MailServer) => Promise.all(mails.map(async one => (await parsed(one)).subject))

describe('what the owner is mailed', { concurrency: 8 }, () => {
  test('one sentence, as subject and as text, to one address, under an id of its own, as a program sends it', async t => {
    const server = await started(t)
    const { channel } = await opened(t, server, { SERVICE_NAME: 'Acme' })
    for (let i = 0; i < 2; i++) assert.deepEqual(await channel.tell(joined(37), running), { is: 'delivered' })
    const sentence = 'Acme: 37 people joined the waitlist, 1,204 in all'
    const ids = new Set<string>()
    for (const one of server.mails) {
      assert.deepEqual([one.from, one.to, one.user], ['hello@acme.example', [to.address], login.user])
      const told = await parsed(one)
      assert.deepEqual([told.from?.name, told.from?.address], ['Acme', 'hello@acme.example'])
      assert.deepEqual([told.to?.length, told.to?.[0]?.name], [1, to.name])
      assert.deepEqual([told.subject, told.text?.trimEnd(), told.html], [sentence, sentence, undefined])
      assert.equal(told.headers.find(({ key }) => key === 'auto-submitted')?.value, 'auto-generated')
      assert.match(told.messageId!, /^<owner_[0-9a-f-]{36}@acme\.example>$/)
      ids.add(told.messageId!)
    }
    assert.equal(ids.size, 2)
  })

  test('in the words of the chats', async t => {
    const server = await started(t)
    const { channel } = await opened(t, server)
    const held = [{ reason: 'above-limit', count: 1_204, oldest: new Date(0), newest: new Date(0) }] as const
    const told: readonly (readonly [Alert, string])[] = [
      [
        joined(9, { doubt: true }),
        '9 people joined the waitlist, 1,204 in all (some of them may have been announced before)',
      ],
      [
        { is: 'unreachable', called: 'Loops', keeps: 'signups' },
        'Loops does not answer: signups are kept and completed later',
      ],
      [
        { is: 'answering', called: 'Loops', keeps: 'signups' },
        'Loops answers again: the signups that were kept are completed now',
      ],
      [{ is: 'holding', held }, 'Signups are being held: 1,204 wait for you (above-limit 1,204): see waitlist held'],
    ]
    for (const [alert] of told) assert.deepEqual(await channel.tell(alert, running), { is: 'delivered' })
    assert.equal(await channel.check(running), null)
    assert.deepEqual(await subjects(server), [...told.map(([, sentence]) => sentence), 'waitlist check: this works'])
  })

  test('the mail server away for an hour: one mail tells of all, the next comes an hour later, and none has a name', async t => {
    let isAway = true
    const server = await started(t, { deed: moment => (isAway && moment === 'greeting' ? reset : null) })
    const { channel } = await opened(t, server)
    const { parts, joins, pass } = await stage(t, [])
    await parts.store.transaction(tx => openChannel(tx, channel.name))
    const { loop } = digests({ ...parts, channel })
    t.after(() => loop.stop(0))
    for (let minute = 0; minute < 60; minute++) {
      await joins()
      await pass(60, loop, 20)
    }
    const probes = server.count('greeting')
    assert.ok(probes > 5 && probes < 25, `${probes} greetings`)
    isAway = false
    await pass(600, loop, 20)
    for (let i = 0; i < 2; i++) {
      await joins()
      await pass(HOUR / 2_000, loop, 60)
    }
    const told = ['60 people joined the waitlist, 60 in all', '2 people joined the waitlist, 62 in all']
    assert.deepEqual(await subjects(server), told)
    for (const { source } of server.mails) assert.doesNotMatch(source.toString(), /Ada|Lovelace/)
  })
})

describe('what becomes of a mail to the owner', { concurrency: 8 }, () => {
  const chatty = `<${to.address}> ${login.user} ${login.password}`
  const cases: [Moment, what: string, Deed, DeliveryResult['is']][] = [
    ['greeting', 'a reset', reset, 'unreached'],
    ['AUTH', '535', say(`535 5.7.8 ${chatty}`), 'misconfigured'],
    // The address is the owner's: nobody else may be accepted.
    ['RCPT', '550 5.1.1', say(`550 5.1.1 ${chatty}`), 'misconfigured'],
    ['RCPT', 'greylisting', say(`450 4.2.0 ${chatty}`), 'unreached'],
    ['DATA', 'a reset', reset, 'unreached'],
    ['the end', '554 5.6.0', say(`554 5.6.0 ${chatty}`), 'misconfigured'],
    ['the end', '451', say(`451 4.3.0 ${chatty}`), 'unreached'],
    ['the end', 'a reset', reset, 'unclear'],
  ]
  for (const [at, what, deed, is] of cases) {
    test(`${at}: ${what} is ${is}`, async t => {
      const server = await started(t, { deed: moment => (moment === at ? deed : null) })
      const outcome = await (await opened(t, server)).channel.tell(joined(3), running)
      assert.equal(outcome.is, is, JSON.stringify(outcome))
      assert.ok(!('alone' in outcome), 'no other mail goes there')
      assertDiscreet(outcome, [login.user, login.password])
    })
  }

  test('when the process stops, what was not begun is not sent', async t => {
    const server = await started(t)
    const outcome = await (await opened(t, server)).channel.tell(joined(1), AbortSignal.abort())
    assert.equal(outcome.is, 'unreached')
    assert.equal(server.connections.all, 0)
  })
})

describe('beside welcome mails', () => {
  test('it goes ahead of those that wait, in the same few sessions', async t => {
    const held: (() => void)[] = []
    const hold: Deed = (client, reply) => void held.push(() => client.write(reply, 'latin1'))
    const server = await started(t, { deed: (moment, count) => (moment === 'AUTH' && count <= 3 ? hold : null) })
    const { channel, welcome } = await opened(t, server)
    const welcomes = Array.from({ length: 6 }, (_, i) => welcome.deliver(joinedEvent(i), running))
    await server.reached('AUTH', 3)
    const told = channel.tell(joined(1), running)
    held.shift()!()
    assert.deepEqual(await told, { is: 'delivered' })
    assert.ok(server.mails.length <= 3, 'those that waited before are still waiting')
    for (const release of held) release()
    for (const result of await Promise.all(welcomes)) assert.deepEqual(result, { is: 'delivered' })
    assert.ok(server.connections.all <= 3)
  })

  test('MAIL_RATE counts both, and what would have to wait for too long is not sent', async t => {
    const server = await started(t)
    const { channel, welcome } = await opened(t, server, { MAIL_RATE: '1' })
    assert.deepEqual(await welcome.deliver(joinedEvent(), running), { is: 'delivered' })
    const outcome = await channel.tell(joined(1), running)
    assert.ok(outcome.is === 'unreached' && outcome.notSent === true, JSON.stringify(outcome))
    assert.equal(server.mails.length, 1)
  })
})
