import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import fc from 'fast-check'
import type { HoldReason } from '../../src/signup/contact.ts'
import type { Alert } from '../../src/waitlist/ports/destination.ts'
import { destinationContract } from '../contracts/destination.ts'
import type { Said } from '../harness/receiver.ts'
import { type Received, startReceiver } from '../harness/receiver.ts'
import { channelAt, discordFake, type Fake, fakes, joined, slackFake } from './chat.ts'

const never = new AbortController().signal

/** A receiver that takes what the vendor would take. */
const vendor =
  (fake: Fake) =>
  (received: Received): Said =>
    fake.read(received) === null ? { status: 400, body: { message: 'invalid' } } : fake.accepted

/** A channel of a vendor in good health, and the texts that it was told. */
async function opened(t: TestContext, fake: Fake, service?: string) {
  const server = await startReceiver(t, vendor(fake))
  const channel = channelAt(t, fake, server.url, service)
  return { channel, server, texts: () => server.received.map(one => fake.read(one)) }
}

/** What a message says, as its vendor would get it, without waiting for its rate. */
function textOf(fake: Fake, news: Alert, service: string | null = null): Promise<string> {
  return new Promise((resolve, reject) => {
    function message(text: string): object {
      resolve(text)
      return fake.chat.message(text)
    }
    const telling = { ...fake, chat: { ...fake.chat, message } }
    const channel = channelAt({ after() {} }, telling, 'http://127.0.0.1:9', service)
    channel.tell(news, AbortSignal.abort()).then(() => channel.close(), reject)
  })
}

for (const fake of fakes) {
  // One event of a destination is one person of a digest.
  destinationContract({
    name: fake.chat.title,
    open(url, t) {
      const { tell } = channelAt(t, fake, url)
      const deliver = ({ contact: { name } }: { contact: { name: string } }, leave: AbortSignal) =>
        tell(joined(1, { names: [name] }), leave)
      return { name: fake.chat.name, events: ['joined'], repeatable: 0, timeout: 15_000, concurrency: 1, deliver }
    },
    receiver: () => vendor(fake),
    telling: () => ({}),
    can: { gone: false, statusAlone: true, refuse: false },
    secrets: fake.secrets,
  })
}

describe('what channels are told', () => {
  const loops = { called: 'Loops', keeps: 'signups' } as const
  const webhook = { called: 'the webhook', keeps: 'events' } as const
  const heldFor = (reason: HoldReason, count: number) => ({ reason, count, oldest: new Date(0), newest: new Date(0) })
  const sentences: readonly (readonly [Alert, string])[] = [
    [joined(1), '1 person joined the waitlist, 1,204 in all'],
    [joined(37), '37 people joined the waitlist, 1,204 in all'],
    [joined(10_000, { total: 1_234_567 }), '10,000 people joined the waitlist, 1,234,567 in all'],
    [joined(2, { total: null }), '2 people joined the waitlist'],
    [
      joined(9, { doubt: true }),
      '9 people joined the waitlist, 1,204 in all (some of them may have been announced before)',
    ],
    [joined(1, { names: ['Ada'] }), 'Ada joined the waitlist, 1,204 in all'],
    [joined(2, { names: ['Ada', 'Grace'] }), 'Ada and Grace joined the waitlist, 1,204 in all'],
    [joined(3, { names: ['Ada', 'Grace', 'Eve'] }), 'Ada, Grace and Eve joined the waitlist, 1,204 in all'],
    [joined(37, { names: ['Ada', 'Grace'] }), 'Ada, Grace and 35 more joined the waitlist, 1,204 in all'],
    [joined(0, { invited: 50 }), '50 people were invited'],
    [
      joined(2, { invited: 50, doubt: true, names: ['Ada'] }),
      'Ada and 1 more joined the waitlist, 1,204 in all; 50 people were invited (some of them may have been announced before)',
    ],
    [{ is: 'unreachable', ...loops }, 'Loops does not answer: signups are kept and completed later'],
    [{ is: 'misconfigured', ...loops }, 'Loops refuses our settings: signups are kept and completed later'],
    [{ is: 'answering', ...loops }, 'Loops answers again: the signups that were kept are completed now'],
    [{ is: 'unreachable', ...webhook }, 'The webhook does not answer: events are kept and delivered later'],
    [{ is: 'misconfigured', ...webhook }, 'The webhook refuses our settings: events are kept and delivered later'],
    [{ is: 'answering', ...webhook }, 'The webhook answers again: the events that were kept are delivered now'],
    [
      { is: 'late', called: 'the mail server' },
      'Deliveries to the mail server are late, the oldest by more than an hour: see waitlist deliveries',
    ],
    [{ is: 'on time', called: 'the mail server' }, 'Deliveries to the mail server are on time again'],
    [
      { is: 'holding', held: [heldFor('above-limit', 1_200), heldFor('same-mailbox', 4)] },
      'Signups are being held: 1,204 wait for you (above-limit 1,200, same-mailbox 4): see waitlist held',
    ],
    [
      { is: 'not holding', held: [heldFor('unverified', 1)] },
      'No more signups are being held: 1 waits for you, see waitlist held',
    ],
    [{ is: 'not holding', held: [] }, 'No more signups are being held: none waits for you'],
    [{ is: 'refusing' }, 'Signups cannot be stored, and visitors are asked to try again later: the log says why'],
    [{ is: 'storing' }, 'Signups are stored again'],
  ]
  for (const [news, sentence] of sentences) {
    test(sentence, async () => {
      for (const fake of fakes) assert.equal(await textOf(fake, news), sentence)
    })
  }

  test('the request is what the vendor documents, byte for byte', async t => {
    const [there, here] = [await opened(t, slackFake), await opened(t, discordFake, 'Acme')]
    assert.deepEqual(await there.channel.tell(joined(37), never), { is: 'delivered' })
    assert.deepEqual(await here.channel.tell(joined(37), never), { is: 'delivered' })
    const [slack, discord] = [there.server.received[0]!, here.server.received[0]!]
    assert.equal(
      slack.text,
      '{"text":"37 people joined the waitlist, 1,204 in all","mrkdwn":false,"unfurl_links":false,"unfurl_media":false}',
    )
    assert.equal(
      discord.text,
      '{"content":"Acme: 37 people joined the waitlist, 1,204 in all","allowed_mentions":{"parse":[]},"flags":4}',
    )
    assert.deepEqual([slack.path, slack.query], [slackFake.path, {}])
    assert.deepEqual([discord.path, discord.query], [discordFake.path, { wait: 'true' }])
  })

  test('what the address asks for in its query stays', async t => {
    const { url, received } = await startReceiver(t, () => discordFake.accepted)
    const path = `${discordFake.path}?thread_id=42&wait=false`
    await channelAt(t, { ...discordFake, path }, url).tell(joined(1), never)
    assert.deepEqual(received[0]!.query, { thread_id: '42', wait: 'false' })
  })

  test('a check sends one line that says what it is', async t => {
    for (const fake of fakes) {
      const { channel, texts } = await opened(t, fake)
      assert.equal(await channel.check(never), null)
      assert.deepEqual(texts(), ['waitlist check: this works'])
    }
  })
})

describe('names that channels are told', () => {
  const named = (fake: Fake, ...names: string[]) => textOf(fake, joined(names.length, { names }))
  const rest = ' joined the waitlist, 1,204 in all'

  test('ordinary ones are as they were typed', async () => {
    const names = ['Ada Lovelace', 'Zoë O’Brien-李', "Seán D'Arcy", 'Martin Luther King, Jr.', 'नमस्ते', 'שלום', '🦀']
    for (const fake of fakes) {
      for (const name of names) assert.equal(await named(fake, name), name + rest)
    }
  })

  const hostile = [
    '@everyone',
    '@here hello',
    '<!channel>',
    '<!everyone|hello>',
    '<@U12345678>',
    '<#C12345678>',
    '<@&80351110224678912>',
    '<t:1618953630:R>',
    'https://evil.example/x',
    'evil.example',
    'mail me@evil.example',
    'discord.gg/evil',
    '[click](https://evil.example)',
    '<https://evil.example|click>',
    '*bold* _it_ ~gone~ `code` ||spoiler|| __under__',
    '```\ncode```',
    '# heading',
    '> quote',
    '- item',
    '1. item',
    '\\@everyone',
    ':tada: <:a:123456789012345678>',
    'Ada\u202Egnp.exe\u2066',
    'Ada\u2028Grace',
    '&lt;!channel&gt;',
    'Ada\u200D\u0000\r\nGrace',
  ]

  /** A link or a mention, by any client: a scheme, a domain, an address, the name of everybody. */
  const LIVE = /:\/\/|[\p{L}\p{N}]\.[\p{L}\p{N}]|@[\p{L}\p{N}]|\.gg\//iu
  const FORBIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/u

  /** The name as the vendor would show it, if all of it is plain text; null: some of it is mark-up. */
  const shown: Readonly<Record<string, (text: string) => string | null>> = {
    slack: text => {
      // Only these three sequences stand for other characters; < and > begin and end mark-up.
      if (/[<>]|&(?!(?:amp|lt|gt);)/.test(text)) return null
      return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&')
    },
    discord: text => {
      // Something is in the place of what was escaped: it may have kept the rest from the beginning of the line.
      const plain = text.replaceAll(/\\([^\p{L}\p{N}\s])/gu, 'x')
      return /[\\*_~`|<>#()[\]]|^(?:-|\d+\.) /.test(plain) ? null : text.replaceAll(/\\([^\p{L}\p{N}\s])/gu, '$1')
    },
  }

  function assertPlain(fake: Fake, text: string, name: string): void {
    assert.doesNotMatch(text, LIVE, name)
    assert.doesNotMatch(text, FORBIDDEN, name)
    assert.notEqual(shown[fake.chat.name]!(text), null, `mark-up: ${text}`)
    assert.ok(text.length <= 2_000)
  }

  test('none is a mention, a link, mark-up or a second line', async () => {
    for (const name of hostile) for (const fake of fakes) assertPlain(fake, await named(fake, name), name)
  })

  const text = fc.oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }),
    fc
      .array(fc.constantFrom(...'@everyone<!>[]()*_~`|\\#&;:/. \u202E\n\u200Bab', ...hostile), { maxLength: 40 })
      .map(all => all.join('')),
  )
  for (const fake of fakes) {
    test(`whatever ten people type, and whatever the service is called, ${fake.chat.title} is told plain text that fits`, async () => {
      const names = fc.array(text, { minLength: 1, maxLength: 10 })
      await fc.assert(
        fc.asyncProperty(names, fc.string({ unit: 'grapheme', maxLength: 100 }), async (names, service) => {
          const people = joined(10_000, { names, total: 9_999_999 })
          assertPlain(fake, await textOf(fake, people, service.slice(0, 100)), JSON.stringify(names))
        }),
        { numRuns: 500 },
      )
    })
  }

  test('the longest names, in which all is escaped, fit into a message of Discord', async () => {
    for (const letter of ['*', '@x', '.x', '🦀', '👩‍💻', '<']) {
      const names = Array(10).fill(letter.repeat(100))
      const service = '*@x'.repeat(33)
      const told = await textOf(discordFake, joined(10_000, { names, doubt: true, total: 9_999_999 }), service)
      assert.ok(told.length <= 2_000, `${told.length}`)
    }
  })

  test('a long name is cut', async () => {
    assert.equal(await named(slackFake, 'x'.repeat(41)), `${'x'.repeat(39)}…${rest}`)
    assert.equal(await named(slackFake, 'x'.repeat(40)), 'x'.repeat(40) + rest)
  })
})

describe('what a channel makes of an answer', { concurrency: 4 }, () => {
  for (const fake of fakes) {
    for (const [what, said] of Object.entries(fake.refusals)) {
      test(`${fake.chat.title}: ${what} is misconfigured, so nobody is abandoned; the log says why`, async t => {
        const { url } = await startReceiver(t, () => said)
        const outcome = await channelAt(t, fake, url).tell(joined(1), never)
        assert.equal(outcome.is, 'misconfigured')
        const why = 'why' in outcome ? outcome.why : ''
        const reason = typeof said.body === 'string' ? said.body : String((said.body as { code: number }).code)
        assert.match(why, new RegExp(`^tell ${fake.chat.title}: answered with ${said.status} `))
        assert.ok(why.includes(reason) || fake === discordFake, why)
      })
    }

    test(`${fake.chat.title}: an answer that repeats the address does not bring it into the log`, async t => {
      const { url } = await startReceiver(t, ({ path }) => ({ status: 404, body: { message: `Cannot POST ${path}` } }))
      const outcome = await channelAt(t, fake, url).tell(joined(1), never)
      const why = 'why' in outcome ? outcome.why : ''
      assert.match(why, /Cannot POST/)
      for (const secret of fake.secrets) assert.ok(!why.includes(secret), why)
    })

    test(`${fake.chat.title}: of messages at once, one a second leaves`, async t => {
      const { channel, server } = await opened(t, fake)
      const began = performance.now()
      await Promise.all([1, 2, 3].map(people => channel.tell(joined(people), never)))
      assert.ok(performance.now() - began >= 2_000)
      assert.equal(server.received.length, 3)
    })
  }

  const limits: readonly (readonly [string, Fake, Said, number])[] = [
    [
      'Slack says it in a field',
      slackFake,
      { status: 429, body: 'rate_limited', headers: { 'retry-after': '30' } },
      30_000,
    ],
    [
      'Discord in a field',
      discordFake,
      { status: 429, body: { retry_after: 64.57 }, headers: { 'retry-after': '65' } },
      65_000,
    ],
    [
      'or in the body alone',
      discordFake,
      { status: 429, body: { message: 'You are being rate limited.', retry_after: 0.35, global: false } },
      350,
    ],
    ['or not at all', discordFake, { status: 429, body: { retry_after: 'soon' } }, 5_000],
  ]
  for (const [what, fake, said, expected] of limits) {
    test(`429: how long to wait, ${what}`, async t => {
      const { url } = await startReceiver(t, () => said)
      const outcome = await channelAt(t, fake, url).tell(joined(1), never)
      assert.deepEqual([outcome.is, 'retryAfter' in outcome && outcome.retryAfter], ['unreached', expected])
    })
  }
})
