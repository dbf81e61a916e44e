import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Failure } from '../../src/http-client/call.ts'
import { type Channel, channelWorker } from '../../src/notify/channel.ts'
import { chat, discord, slack } from '../../src/notify/chat.ts'
import { LAG } from '../../src/notify/cursor.ts'
import { outageSentence } from '../../src/notify/sentences.ts'
import { keptLog } from '../harness/log.ts'
import { type Received, startReceiver } from '../harness/receiver.ts'
import { bulk, type MakePlace, onSqlite, signup } from '../store/place.ts'

const running = new AbortController().signal

describe('a chat', () => {
  const chats = [
    { which: slack, path: '/services/T00000000/B00000000/XXXXXXXXXXXXXXXX', text: ({ json }: Received) => json.text },
    {
      which: discord,
      path: '/api/webhooks/223704706495545344/aVeryLongToken',
      text: ({ json }: Received) => json.content,
    },
  ]
  for (const { which, path, text } of chats) {
    test(`${which.name}: a sentence is plain text without links and mentions; no failure is the sentence's`, async t => {
      let status = 200
      const receiver = await startReceiver(t, () => ({ status, body: `no ${path}` }))
      const channel = chat(which, receiver.url + path, 'Acme.io')
      assert.equal(await channel.send('37 people <@U1> *b* https://evil.example\n@everyone & more', running), null)
      const [one] = receiver.received as [Received]
      const shown = text(one).replaceAll('\u200B', '').replaceAll('\\', '')
      const escaped =
        which === slack
          ? '&lt;@U1&gt; *b* https://evil.example @everyone &amp; more'
          : '<@U1> *b* https://evil.example @everyone & more'
      assert.equal(shown, `Acme.io: 37 people ${escaped}`)
      assert.doesNotMatch(text(one), /:\/\/|evil\.example|@everyone|@U1|Acme\.io/)
      if (which === discord) assert.deepEqual([one.query.wait, one.json.allowed_mentions], ['true', { parse: [] }])
      for (const [code, is] of [
        [400, 'misconfigured'],
        [404, 'misconfigured'],
        [429, 'rate limited'],
        [500, 'in doubt'],
      ] as const) {
        status = code
        const failure = await channel.send('Hi', running)
        assert.equal(failure?.is, is)
        for (const secret of path
          .split('/')
          .slice(2)
          .filter(({ length }) => length >= 8))
          assert.ok(!failure.why.includes(secret))
      }
    })
  }
})

/** A channel over a store whose clock the test sets. */
async function stage(t: TestContext, place: MakePlace = onSqlite) {
  const here = await place(t)
  const clock = { now: Date.UTC(2030, 0, 1) }
  const store = await here.open({ clock: () => clock.now })
  const { log, lines } = keptLog()
  const sent: string[] = []
  const stagehand = { failure: null as Failure | null }
  const channel: Channel = {
    ...{ name: 'chat', label: 'the chat', minInterval: 60_000 },
    async send(sentence) {
      sent.push(sentence)
      return stagehand.failure
    },
    close: async () => {},
  }
  const open = () => channelWorker(channel, { store, log })
  const worker = open()
  await worker.open()
  clock.now += LAG
  return {
    ...{ here, store, clock, sent, lines, stagehand, worker, open },
    joins: async (...names: string[]) => {
      for (const name of names) await store.admit(signup(name, `${name}@example.com`))
      clock.now += LAG
    },
  }
}

test('all who joined and were invited since the last message share one, a minute apart', async t => {
  const { worker, joins, clock, sent, here, open } = await stage(t)
  await worker.once()
  assert.deepEqual(sent, [])
  await joins('Ada', 'Grace')
  await worker.once()
  await joins('Eve')
  await here.operator.invite({}, 1, { eventName: 'waitlist.invited', destinations: [] }, bulk)
  await here.sql('update contact set invited_at = $1 where invited_at is not null', [clock.now - LAG])
  // Of this process or another, for the database has the cursor.
  await open().once()
  assert.equal(sent.length, 1)
  clock.now += 60_000
  await open().once()
  await open().once()
  assert.deepEqual(sent, [
    '2 people joined the waitlist, 2 in all',
    '1 person joined the waitlist, 3 in all; 1 person was invited',
  ])
})

test('what fails is sent again with those who joined since, and says so when it may have arrived', async t => {
  const { joins, sent, stagehand, open } = await stage(t)
  await joins('Ada')
  for (const failure of [{ is: 'unreachable', why: 'down' }, { is: 'in doubt', why: 'no answer' }, null] as const) {
    stagehand.failure = failure
    await open().once()
    await joins(`Grace-${sent.length}`)
  }
  assert.deepEqual(sent, [
    '1 person joined the waitlist, 1 in all',
    '2 people joined the waitlist, 2 in all',
    '3 people joined the waitlist, 3 in all (some of them may have been announced before)',
  ])
})

test('a channel that is out is probed, and the log says so once', async t => {
  const { joins, sent, stagehand, worker, lines } = await stage(t)
  stagehand.failure = { is: 'misconfigured', why: 'answered with 404' }
  await joins('Ada')
  for (let i = 0; i < 20; i++) await worker.once()
  assert.deepEqual([sent.length, lines.length], [1, 0])
})

test("an outage is told with the other side's own words", () => {
  const watched = { name: 'mail', label: 'the mail server', keeps: 'events' } as const
  assert.equal(
    outageSentence(watched, 'unreachable', 'DATA: 554 5.7.1 looks like spam'),
    'The mail server does not answer: events are kept and delivered later. DATA: 554 5.7.1 looks like spam',
  )
})
