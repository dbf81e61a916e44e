import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { headers, page } from '../../src/admin/page.ts'
import type { Snapshot } from '../../src/admin/server.ts'
import type { Counts } from '../../src/store/counts.ts'
import { assertAccessible, openPage, startBrowser } from '../harness/browser.ts'
import { isSlow } from '../harness/environment.ts'

const MINUTE = 60_000

/** A Friday afternoon. */
const now = new Date('2026-11-20T15:04:12Z')
const minutesAgo = (minutes: number): Date => new Date(now.getTime() - minutes * MINUTE)

type DeliveryCount = Counts['deliveries'][number]
const delivery = (
  destination: string,
  state: DeliveryCount['state'],
  count: number,
  more: Partial<DeliveryCount> = {},
): DeliveryCount => ({ destination, state, count, oldest: null, why: null, ...more })

const nobody = {
  takesSignups: true,
  counts: {
    at: now,
    contacts: { unconfirmed: 0, listed: 0, pending: 0, held: 0, invited: 0 },
    redeemed: 0,
    held: [],
    signups: [],
    sources: [],
    deliveries: [],
  } as Counts,
  countsError: null,
  destinations: [],
  isDraining: false,
} satisfies Snapshot

/** A million contacts, with most of what can go wrong. */
const million: Snapshot = {
  ...nobody,
  counts: {
    ...nobody.counts,
    contacts: { unconfirmed: 12, listed: 1_233_333, pending: 1_234, held: 40, invited: 1_250 },
    redeemed: 31,
    held: [{ reason: 'above-limit', count: 40 }],
    signups: Array.from({ length: 180 }, (_, i) => ({ from: minutesAgo(15 * (180 - i)), count: (i * i) % 997 })),
    deliveries: [
      delivery('loops', 'waiting', 1_234, { oldest: minutesAgo(121), why: 'create a contact: answered with 401' }),
      delivery('loops-automation', 'delivered', 1_233_333),
      delivery('webhook', 'delivered', 1_230_001),
      delivery('webhook', 'waiting', 3_320, { oldest: minutesAgo(41), why: 'send an event: no answer within 15 s' }),
      delivery('webhook', 'abandoned', 12, { why: 'send an event: answered with 400 (unknown field)' }),
      delivery('mail', 'waiting', 7, { oldest: minutesAgo(9 * 1_440) }),
    ],
  },
  destinations: [
    { name: 'loops', outage: 'misconfigured' },
    { name: 'loops-automation', outage: null },
    { name: 'webhook', outage: 'unreachable' },
    { name: 'discord', outage: null },
  ],
}

const html = (snapshot: Snapshot, service = 'Acme') => page(snapshot, { service, version: '0.1.0' })

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

  test('names what needs attention, and what to do', () => {
    const unknown = having(null, waiting(7, 1))
    const problems: readonly (readonly [snapshot: Snapshot, expected: RegExp, isUrgent?: true])[] = [
      [
        { ...nobody, takesSignups: false },
        /\nSignups cannot be stored\n.* try again later\. .*\nwaitlist check\n/,
        true,
      ],
      [
        { ...nobody, counts: null, countsError: 'no connection' },
        /could not be counted\n.* unaffected\.\nno connection\n/,
      ],
      [{ ...million, destinations: [] }, /\n40 held\nBy reason: above-limit 40\. .*\nwaitlist list --state held\n/],
      [
        having('misconfigured', waiting(2, 1, 'answered with 401')),
        /\nwebhook refuses our key or settings\nNothing is lost: .*\nanswered with 401\nwaitlist check\n/,
        true,
      ],
      [having('unreachable'), /\nwebhook does not answer\nNothing is lost: deliveries are retried\.\n/],
      [having(null, waiting(2, 61)), /\nwebhook is late\n2 deliveries wait, .* for 61 min\.\n/],
      [
        having(null, delivery('webhook', 'abandoned', 1, { why: 'answered with 400' })),
        /\n1 abandoned for webhook\n.*\nanswered with 400\nwaitlist deliveries --state abandoned\n/,
      ],
      [{ ...unknown, destinations: [] }, /\nwebhook is not set\n7 deliveries wait until it is set again\.\n/],
    ]
    for (const [snapshot, expected, isUrgent = false] of problems) {
      const text = textOf(snapshot)
      assert.match(text, expected)
      assert.doesNotMatch(text, GOOD)
      assert.equal(/<title>⚠/.test(html(snapshot)), isUrgent)
    }
  })

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
})

/** A folder for pictures to look at. */
const { SCREENSHOTS } = process.env

test('axe finds nothing, the browser has no complaint, and nothing is wider than a phone or a desk, light and dark', {
  skip: !isSlow && SCREENSHOTS === undefined && 'it takes seconds of a processor; it runs in .ci/run',
}, async t => {
  const browser = await startBrowser(t)
  if ('missing' in browser) return t.skip(browser.missing)
  const snapshots = { million, nobody, down: { ...million, takesSignups: false } }
  const server = createServer((request, response) => {
    const snapshot = snapshots[request.url!.slice(1) as keyof typeof snapshots]
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(html(snapshot))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close().closeAllConnections())
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [320, 375, 1280]) {
      const viewport = { width, height: 900 }
      // Only so may axe be added to the page.
      const { page, origins } = await openPage(t, browser, `${origin}/nobody`, {
        colorScheme,
        viewport,
        bypassCSP: true,
      })
      for (const name of Object.keys(snapshots)) {
        await page.goto(`${origin}/${name}`)
        await assertAccessible(page, `${name}, ${colorScheme}, ${width}`)
        if (SCREENSHOTS === undefined) continue
        mkdirSync(SCREENSHOTS, { recursive: true })
        await page.screenshot({ path: join(SCREENSHOTS, `${name}-${colorScheme}-${width}.png`), fullPage: true })
      }
      assert.deepEqual([...origins], [origin])
    }
  }
  const { page, complaints } = await openPage(t, browser, `${origin}/million`)
  // Its policy allows its own style.
  assert.equal(await page.evaluate('getComputedStyle(document.querySelector("main")).display'), 'grid')
  assert.deepEqual(complaints, [])
})
