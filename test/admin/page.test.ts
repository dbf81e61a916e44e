import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { page, policy } from '../../src/admin/page.ts'
import { problemsIn } from '../../src/admin/problems.ts'
import type { Reading } from '../../src/admin/reading.ts'
import { SOURCES } from '../../src/waitlist/alerts/counts.ts'
import { LATE } from '../../src/waitlist/alerts/watch.ts'
import type { Outage } from '../../src/waitlist/ports/destination.ts'
import { ago, counted, delivery, empty, few, million, now, uncounted } from './readings.ts'

process.env.TZ = 'Europe/Berlin'
const options = { refreshes: true, instance: 'process 7 on host-1' }
const of = (reading: Reading, more: Partial<typeof options> = {}) => page(reading, { ...options, ...more })

const entities: Record<string, string> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&amp;': '&' }
const TAG = /<[^>]*>/g

/** What is read: without the style, without the words of the plots, each element in a line. */
const textOf = (html: string): string =>
  html
    .replaceAll(/<style>.*?<\/style>|<svg.*?<\/svg>/gs, '')
    .replaceAll(/<\/?(?:b|bdi|time|small|span|strong|code|a)\b[^>]*>/g, '')
    .replaceAll(TAG, '\n')
    .replaceAll(/&(?:lt|gt|quot|#39|amp);/g, entity => entities[entity]!)
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .join('\n')

function assertSays(reading: Reading, ...lines: readonly (string | RegExp)[]) {
  const text = textOf(of(reading))
  for (const line of lines) {
    if (typeof line === 'string') assert.ok(`\n${text}\n`.includes(`\n${line}\n`), `${line}\nis not in\n${text}`)
    else assert.match(text, line)
  }
}

describe('what the page says', () => {
  test('of nobody', () => {
    assertSays(
      empty,
      'Acme',
      'Signups are taken. Nothing needs you.',
      'On the list\n0\nLast full minute\n0\nToday\n0',
      'none in 60 minutes',
    )
    assertSays(empty, 'No contact has a known source. With TRACK_SOURCES=true a landing page can name one.')
    assertSays(empty, 'No provider, webhook, mail or chat is set: nobody is told of contacts.')
  })

  test('of signups that are held: how many, for what, and what to do', () => {
    const day = ago(86_400_000)
    const held = [
      { reason: 'above-limit', count: 1_200, oldest: day, newest: day },
      { reason: 'same-mailbox', count: 34, oldest: day, newest: day },
    ] as const
    const counts = {
      ...empty.counts,
      contacts: { unconfirmed: 0, listed: 3, pending: 0, held: 1_234, invited: 0 },
      held,
    }
    const reading = { ...empty, counts, telemetry: counted({ held: 1_234 }) }
    assertSays(reading, 'On the list\n3\n1,234 held, not counted here', 'Held, until you release them\n1,234')
    assertSays(
      reading,
      '1,234 signups are held',
      /\nBy reason: above-limit 1,200, same-mailbox 34\. Nothing is sent until you release them/,
    )
    assertSays(reading, /until you release them\. See docs\/bots\.md, “Held signups”\.\n/)
    assertSays(reading, /waitlist held.*waitlist (?:-- )?release --reason above-limit\n/)
    assert.doesNotMatch(textOf(of(reading)), /--all|discard/)
    assert.match(of(reading), /<a href="#problems">held<\/a>/)
    assert.doesNotMatch(textOf(of(few)), /held/i)
  })

  test('of a service that stops', () => {
    assertSays({ ...empty, isDraining: true }, 'This process stops as soon as all visitors have their answers.')
  })

  test('of a million, with what waits and why', () => {
    assertSays(million, 'On the list\n1,234,567\n1,233,333 listed\n1,234 pending, until loops confirms them')
    assertSays(million, 'producthunt\n402,113\n32.6%', 'other sources\n8,119\n0.7%', 'not known\n463,567\n37.5%')
    assertSays(
      million,
      'loops refuses our settings the provider\nwaiting create a contact: answered with 401 (bad key)\n–\n1,234\n119 min since 20 Nov, 14:04\n0',
      /^webhook does not answer\nwaiting send an event: no answer within 15 s\nabandoned send an event: answered with 400 \(unknown field\)\n1,230,001\n3,320\n41 min since 20 Nov, 15:22\n12$/m,
      /^mail not set\n0\n7\n8 days since 11 Nov, 16:04\n0$/m,
    )
    assertSays(million, 'Calls to loops', 'Contact created\n400,021', 'Key or settings refused\n55')
  })

  test('of those who are invited, and how many of them came', () => {
    const contacts = { unconfirmed: 0, listed: 10, pending: 0, held: 0, invited: 1_250 }
    const reading = { ...empty, counts: { ...empty.counts, contacts, redeemed: 31 } }
    assertSays(reading, 'On the list\n1,260\n10 listed\n1,250 invited, 31 of them came')
    assert.doesNotMatch(textOf(of(million)), /invited/)
  })

  test('while nothing was counted: what this process saw', () => {
    assertSays(uncounted, 'The contacts are being counted.', 'New on the list\n3', 'webhook no trouble\n0\n0\n–\n0')
    assert.match(of(uncounted), /<title>Acme<\/title>/)
    assertSays(uncounted, 'Signups are taken.')
    for (const unknown of [uncounted, { ...few, store: null }, { ...uncounted, store: null }]) {
      assert.doesNotMatch(textOf(of(unknown)), /Nothing needs you/)
    }
  })

  test('of many sources the largest; the others are summed up', () => {
    const sources = Array.from({ length: SOURCES }, (_, i) => ({ source: `source-${i}`, count: 100 - i }))
    const counts = { ...million.counts!, sources, sourced: 5_000 }
    const shown = [...textOf(of({ ...million, counts })).matchAll(/^source-/gm)].length
    assert.equal(shown, 12)
    const rest = 5_000 - sources.slice(0, shown).reduce((sum, { count }) => sum + count, 0)
    assertSays({ ...million, counts }, `other sources\n${rest.toLocaleString('en')}\n0.3%`)
  })
})

describe('words of others', () => {
  /** Every element, with its attributes, apart from those that are of a time. */
  const skeleton = (html: string) => html.match(TAG)!.map(tag => tag.replace(/datetime="[^"]*"/, ''))

  const VOID = /^<(?:meta|link|!)/
  function assertWellFormed(html: string) {
    const open: string[] = []
    for (const tag of html.match(TAG)!) {
      const [, closes, name, , alone] =
        /^<(\/?)([a-z][a-z0-9]*)((?:\s+[a-zA-Z0-9:-]+=(?:"[^"<>]*"|'[^'<>]*'))*)\s*(\/?)>$/.exec(tag) ?? []
      if (VOID.test(tag)) continue
      assert.ok(name !== undefined, `no tag: ${tag}`)
      if (closes === '/') assert.equal(open.pop(), name)
      else if (alone !== '/') open.push(name)
    }
    assert.deepEqual(open, [])
    assert.doesNotMatch(html.replace(/<style>.*?<\/style>/s, '').replaceAll(TAG, ''), /[<>]/)
  }

  const hostile = fc.oneof(
    fc.constantFrom(
      '<script>alert(1)</script>',
      '</title><img src=x onerror=alert(1)>',
      '"><svg onload=alert(1)>',
      "' autofocus onfocus='alert(1)",
      '</style><style>*{display:none}</style>',
      '<!--',
      ']]>',
      '&lt;b&gt;',
      'a\u202Eb\u2066c\u200F',
      '\u0000\u001b[31m\r\n',
      '$& $1 $`',
      'x'.repeat(5_000),
      'e\u0301\u0302'.repeat(100),
      '\ud800',
    ),
    fc.string({ unit: 'binary', maxLength: 300 }),
  )
  const two = fc.uniqueArray(hostile, { minLength: 2, maxLength: 2 })

  const withWords = (service: string, [source, other]: string[], [name, another]: string[], why: string): Reading => ({
    ...million,
    service,
    provider: name!,
    countsFailed: why,
    destinations: [{ name: name!, outage: 'misconfigured', lateAfter: LATE }],
    counts: {
      ...empty.counts,
      sources: [
        { source: source!, count: 2 },
        { source: other!, count: 1 },
      ],
      deliveries: [
        delivery(name!, 'waiting', 1, { oldest: ago(7_000_000), why }),
        delivery(name!, 'abandoned', 1, { why }),
        delivery(another!, 'waiting', 2, { oldest: ago(1_000), why }),
      ],
    },
  })
  const plain = of(withWords('a', ['b', 'c'], ['D', 'E'], 'f'))

  test('whatever sources, reasons, destinations and the service are called, the elements are ours', () => {
    assertWellFormed(plain)
    fc.assert(
      fc.property(hostile, two, two, hostile, (service, sources, names, why) => {
        // A name that a command may have would be in it, with an element of its own.
        const destinations = names.map(name => `!${name}`)
        const html = of(withWords(service, sources, destinations, why), { instance: service })
        assert.deepEqual(skeleton(html), skeleton(plain))
        assertWellFormed(html)
        assert.doesNotMatch(html, /[\p{Bidi_Control}\p{Cs}\u0000-\u0009\u000b-\u001f\u007f]/u)
        assert.ok(html.length < 2 * plain.length)
      }),
      { numRuns: 30 },
    )
  })

  test('ordinary ones are as they are; of long ones the beginning; of invisible ones that', () => {
    const shown = (source: string) => {
      const counts = { ...few.counts!, sources: [{ source, count: 1 }], sourced: 1 }
      return /<tbody>\n<tr>\n<th scope="row"><bdi>(.*?)<\/bdi>/.exec(of({ ...few, counts }))?.[1]
    }
    for (const source of ['hackernews', 'Zoë’s letter', 'שלום', '🦀 crab']) assert.equal(shown(source), source)
    assert.equal(shown('x'.repeat(61)), `${'x'.repeat(59)}…`)
    assert.equal(shown('a & b'), 'a &amp; b')
    assert.equal(shown('\u200b\u202e\u0000'), '(nothing to be seen)')
  })
})

test('the policy allows the style of the page by its hash, and nothing else but its icon', () => {
  const [, style] = /<style>(.*?)<\/style>/s.exec(of(few))!
  const hash = createHash('sha256').update(style!).digest('base64')
  assert.equal(
    policy,
    `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  )
  assert.doesNotMatch(of(million), /<script|\sstyle=|\son[a-z]+=|https?:\/\/(?!www\.w3\.org)/)
})

const MINUTE = 60_000

/** One destination, which is set, with these deliveries. */
const having = (outage: Outage | null, ...deliveries: ReturnType<typeof delivery>[]) => ({
  ...few,
  destinations: [{ name: 'webhook', outage, lateAfter: LATE }],
  counts: { ...few.counts!, deliveries },
})

const waiting = (count: number, minutes: number, why: string | null = null) =>
  delivery('webhook', 'waiting', count, { oldest: ago(minutes * MINUTE), why })

const waitingOnes = 'waitlist deliveries --state waiting --destination webhook'

const cases: readonly {
  readonly what: string
  readonly reading: Reading
  readonly urgent?: true
  readonly title: string
  readonly text: string
  readonly why?: string
  readonly commands?: readonly string[]
}[] = [
  {
    what: 'a store that takes no signups',
    reading: { ...few, store: { takesSignups: false, triedAt: now } },
    urgent: true,
    title: 'Signups cannot be stored',
    text: 'Visitors are asked to try again later. The log says why.',
    commands: ['waitlist check'],
  },
  {
    what: 'a key that is refused, before anybody waits',
    reading: having('misconfigured'),
    urgent: true,
    title: 'webhook refuses our key or settings',
    text: 'Nothing waits for it. Nothing is lost: correct the key or the setting, and restart the service.',
    commands: ['waitlist check', waitingOnes],
  },
  {
    what: 'a key that is refused, with what waits and why',
    reading: having('misconfigured', waiting(1_204, 121, 'answered with 401')),
    urgent: true,
    title: 'webhook refuses our key or settings',
    text: '1,204 contacts wait, the oldest for 2 h. Nothing is lost: correct the key or the setting, and restart the service.',
    why: 'answered with 401',
    commands: ['waitlist check', waitingOnes],
  },
  {
    what: 'a destination that is away, however long: that is told as such',
    reading: having('unreachable', waiting(1, 90)),
    title: 'webhook does not answer',
    text: '1 contact waits, the oldest for 90 min. Nothing is lost: it goes on when the other side answers.',
    commands: ['waitlist check', waitingOnes],
  },
  {
    what: 'deliveries that are late',
    reading: having(null, waiting(2, 61, 'no answer in time')),
    title: 'Deliveries to webhook are late',
    text: '2 contacts wait, the oldest for 61 min.',
    why: 'no answer in time',
    commands: ['waitlist check', waitingOnes],
  },
  {
    what: 'abandoned deliveries',
    reading: having(null, delivery('webhook', 'abandoned', 1, { why: 'answered with 400' })),
    title: '1 delivery to webhook abandoned',
    text: 'When the cause is gone, they can be replayed.',
    why: 'answered with 400',
    commands: [
      'waitlist deliveries --state abandoned --destination webhook',
      'waitlist deliveries replay --abandoned --destination webhook',
    ],
  },
  {
    what: 'what waits for a destination that is not set',
    reading: { ...few, destinations: [], counts: { ...few.counts!, deliveries: [waiting(7, 1)] } },
    title: 'webhook is not set',
    text: '7 contacts wait, and will until it is set again.',
    commands: [waitingOnes],
  },
  {
    what: 'a disk that is almost full',
    reading: { ...few, freeSpace: 512_000_000 },
    title: 'The disk is almost full',
    text: '512 MB are free where the database is. When the disk is full, signups are refused.',
  },
  {
    what: 'a count that failed after others',
    reading: { ...few, countsFailed: 'no connection' },
    title: 'The contacts could not be counted',
    text: 'What this page counts is old; signups are not concerned.',
    why: 'no connection',
  },
]

describe('what needs the owner', () => {
  for (const { what, reading, urgent = false, title, text, why = null, commands = [] } of cases) {
    test(what, () => {
      assert.deepEqual(problemsIn(reading), [{ isUrgent: urgent, title, text, why, commands }])
    })
  }

  test('nothing: a healthy service, one that has not looked yet, and what waits for a while', () => {
    for (const reading of [empty, few, { ...few, store: null, counts: null, freeSpace: null }]) {
      assert.deepEqual(problemsIn(reading), [])
    }
    assert.deepEqual(problemsIn(having(null, waiting(9, 59), delivery('webhook', 'delivered', 9))), [])
  })

  test('nothing: what is meant to wait for longer', () => {
    const reading = having(null, waiting(9, 61))
    const destinations = reading.destinations.map(each => ({ ...each, lateAfter: 2 * LATE }))
    assert.deepEqual(problemsIn({ ...reading, destinations }), [])
  })

  test('the urgent comes first', () => {
    assert.deepEqual(
      problemsIn({ ...million, store: { takesSignups: false, triedAt: now } }).map(({ isUrgent }) => isUrgent),
      [true, true, false, false, false, false],
    )
  })
})
