import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { page, policy } from '../../src/admin/page.ts'
import type { Snapshot } from '../../src/admin/server.ts'
import { delivery, million, minutesAgo, nobody } from './snapshots.ts'

const options = { service: 'Acme', version: '0.1.0', refreshes: true }
const html = (snapshot: Snapshot, service = 'Acme') => page(snapshot, { ...options, service })

/** What is read, each element on a line. */
const textOf = (snapshot: Snapshot): string =>
  html(snapshot)
    .replaceAll(/<style>.*?<\/style>|<svg.*?<\/svg>/gs, '')
    .replaceAll(/<\/?(?:bdi|small|a)\b[^>]*>/g, '')
    .replaceAll(/<[^>]*>/g, '\n')
    .replaceAll(/\s*\n\s*/g, '\n')

const having = (outage: 'unreachable' | 'misconfigured' | null, ...deliveries: ReturnType<typeof delivery>[]) => ({
  ...nobody,
  destinations: [{ name: 'webhook', outage }],
  counts: { ...nobody.counts, deliveries },
})
const waiting = (count: number, minutes: number, why: string | null = null) =>
  delivery('webhook', 'waiting', count, { oldest: minutesAgo(minutes), why })

const GOOD = /Signups are stored\. Nothing needs attention\./

describe('the page', () => {
  test('of an empty list says that nothing needs attention', () => {
    const text = textOf(nobody)
    assert.match(text, GOOD)
    assert.match(text, /On the list\n0\nToday\n0\n/)
    assert.match(text, /Signups per hour\nnone in 48 hours\n/)
    assert.match(text, /No provider, webhook, mail or chat is configured\./)
  })

  test('of a long list has totals by state, one chart, and deliveries', () => {
    const text = textOf(million)
    assert.match(text, /On the list\n1,235,817\n/)
    for (const total of ['Listed\n1,233,333', 'Pending\n1,234', 'Invited\n1,250', 'Redeemed\n31', 'Held\n40']) {
      assert.ok(text.includes(`\n${total}\n`), total)
    }
    assert.match(text, /\nwebhook does not answer\n1,230,001\n3,320 for 41 min\n12\n/)
    assert.match(text, /\nmail not set\n0\n7 for 9 days\n0\n/)
    assert.match(text, /\ndiscord ok\n0\n0\n0\n/)
    const bars = [...html(million).matchAll(/<rect [^>]*height="([\d.]+)"/g)].map(([, height]) => Number(height))
    assert.equal(bars.length, 48)
    assert.ok(bars.some(height => height === 100) && bars.every(height => height <= 100))
  })

  const problems: readonly (readonly [what: string, snapshot: Snapshot, expected: RegExp, isUrgent: boolean])[] = [
    [
      'a store that takes no signups',
      { ...nobody, store: { takesSignups: false, freeBytes: null } },
      /\nSignups cannot be stored\nVisitors are asked to try again later\. .*\nwaitlist check\n/,
      true,
    ],
    [
      'a disk that is almost full',
      { ...nobody, store: { takesSignups: true, freeBytes: 512_000_000 } },
      /\nThe disk is almost full\n512 MB are free/,
      false,
    ],
    [
      'contacts that cannot be counted',
      { ...nobody, counts: null, countsError: 'no connection' },
      /\nThe contacts could not be counted\nThe totals are missing\. Signups are unaffected\.\nno connection\n/,
      false,
    ],
    [
      'held signups',
      { ...million, destinations: [] },
      /\n40 held\nBy reason: above-limit 40\. Nothing is sent until you release them\.\nwaitlist list --state held\n/,
      false,
    ],
    [
      'a refused key',
      having('misconfigured', waiting(2, 1, 'answered with 401')),
      /\nwebhook refuses our key or settings\nNothing is lost: .*\nanswered with 401\nwaitlist check\n/,
      true,
    ],
    ['an outage', having('unreachable'), /\nwebhook does not answer\nNothing is lost: .* until it answers\.\n/, false],
    ['late deliveries', having(null, waiting(2, 61)), /\nwebhook is late\n2 deliveries wait, .* for 61 min\.\n/, false],
    [
      'abandoned deliveries',
      having(null, delivery('webhook', 'abandoned', 1, { why: 'answered with 400' })),
      /\n1 abandoned for webhook\n.*\nanswered with 400\nwaitlist deliveries --state abandoned\n/,
      false,
    ],
    [
      'deliveries for a destination that is not set',
      { ...having(null, waiting(7, 1)), destinations: [] },
      /\nwebhook is not set\n7 deliveries wait until it is set again\.\n/,
      false,
    ],
  ]
  for (const [what, snapshot, expected, isUrgent] of problems) {
    test(`needs attention: ${what}`, () => {
      const text = textOf(snapshot)
      assert.match(text, expected)
      assert.doesNotMatch(text, GOOD)
      assert.equal(/<title>⚠/.test(html(snapshot)), isUrgent)
    })
  }

  test('no problem: what waits for a while, and a channel that waits for its interval', () => {
    const snapshot = having(null, waiting(9, 59), delivery('webhook', 'delivered', 9))
    assert.match(
      textOf({ ...snapshot, destinations: [...snapshot.destinations, { name: 'slack', outage: null }] }),
      GOOD,
    )
    assert.match(textOf({ ...nobody, isDraining: true }), /\nShutting down after requests in flight\.\n/)
  })

  test('text of others changes no element, and no direction', () => {
    const named = (text: string): Snapshot => ({
      ...having('misconfigured', delivery(`!${text}`, 'waiting', 1, { why: text })),
      destinations: [{ name: text, outage: 'misconfigured' }],
      countsError: text,
    })
    const elements = (text: string) => html(named(text), text).match(/<[^>]*>/g)
    for (const hostile of [
      '<script>alert(1)</script>',
      '</title></style><img src=x onerror=alert(1)>',
      `"' autofocus onfocus='alert(1)`,
      '<!--',
      'a\u202Eb\u2066c\u0000\u001b[31m\r\n',
      'x'.repeat(5_000),
    ]) {
      assert.deepEqual(elements(hostile), elements('a'))
      assert.doesNotMatch(html(named(hostile), hostile), /[\p{Bidi_Control}\0\u001b\r]|x{1000}/u)
    }
  })

  test('its policy allows its own style, and nothing else', () => {
    const [, style] = /<style>(.*?)<\/style>/s.exec(html(million))!
    const hash = createHash('sha256').update(style!).digest('base64')
    assert.ok(policy.startsWith(`default-src 'none'; style-src 'sha256-${hash}';`), policy)
    assert.doesNotMatch(html(million), /<script|\sstyle=|\son[a-z]+=|https?:/)
  })
})
