import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { slide } from '../../src/charts/slide.ts'
import { plot } from '../../src/charts/svg.ts'
import { startBrowser } from '../harness/browser.ts'
import { isSlow } from '../harness/slow.ts'
import { statsIn } from './figures.ts'

/** The name of every element, in order; throws where XML is not well-formed as far as a picture of ours goes. */
function elements(svg: string): string[] {
  const open: string[] = []
  const all: string[] = []
  const rest = svg.replaceAll(
    /<(\/?)(\w+)((?: [\w-]+(?::\w+)?="[^"<&]*(?:&#\d+;[^"<&]*)*")*)(\/?)>/g,
    (_, end, name, __, alone) => {
      if (end) assert.equal(open.pop(), name)
      else all.push(name)
      if (!end && !alone) open.push(name)
      return ''
    },
  )
  assert.deepEqual(open, [])
  assert.doesNotMatch(rest.replaceAll(/&#\d+;/g, ''), /[<>&]/)
  return all
}

describe('a picture', () => {
  test('is well-formed, whatever strangers wrote, and has nothing that runs or is loaded', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 80 }),
        fc.array(fc.integer({ min: 0, max: 3_000_000 }), { maxLength: 48 }),
        (text, hours) => {
          const svg = slide(text, statsIn(hours, text))
          const names = elements(svg)
          assert.deepEqual(names.slice(0, 3), ['svg', 'title', 'desc'])
          const known = ['svg', 'title', 'desc', 'style', 'rect', 'text', 'g', 'line', 'path']
          assert.deepEqual(
            names.filter(name => !known.includes(name)),
            [],
          )
          assert.doesNotMatch(svg, /NaN|undefined|Infinity|href|url\(|@import/)
        },
      ),
      { numRuns: isSlow ? 20 : 5 },
    )
  })

  test('of one chart is an element of a page, with a title, a summary and a number for each bar', () => {
    const { perHour: bars } = statsIn([1_200, 0, 3])
    const svg = plot({
      id: 'hours',
      title: 'A < B',
      bars,
      unit: 'hour',
      timezone: 'UTC',
      width: 800,
      height: 200,
      text: 14,
    })
    assert.ok(elements(svg).includes('path'))
    assert.match(svg, /<title id="hours-title">A &#60; B<\/title>/)
    assert.match(svg, />1,203 signups in 48 hours; the most, 1,200, on Sun 22 Nov, 13:00\.</)
    assert.deepEqual(
      [...svg.matchAll(/<path class="([^"]+)"[^>]*><title>([^<]+)/g)].map(([, of, said]) => [of, said]),
      [
        ['bar', 'Sun 22 Nov, 13:00: 1,200'],
        ['bar now', 'Sun 22 Nov, 15:00: 3'],
      ],
    )
  })
})

const pictures = {
  'an empty list': slide('Acme', statsIn([])),
  'a few': slide('Acme', statsIn([1, 0, 2])),
  'a million': slide(
    'A service of a very long name, with a claim behind it',
    statsIn(Array(48).fill(21_000), '新聞'.repeat(30)),
  ),
}

test('in a browser no text covers another or leaves the picture', {
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const browser = await startBrowser(t)
  if ('missing' in browser) return t.skip(browser.missing)
  for (const [what, svg] of Object.entries(pictures)) {
    const page = await browser.newPage({ viewport: { width: 1600, height: 900 } })
    await page.goto(`data:image/svg+xml,${encodeURIComponent(svg)}`)
    // The letters themselves: a box has room for accents above them, and for what hangs below.
    const boxes = await page.evaluate<{ text: string; x: number; y: number; right: number; bottom: number }[]>(
      `[...document.querySelectorAll('text')].map(text => {
        const { x, y, right, bottom, height } = text.getBoundingClientRect()
        return { text: text.textContent, x, y: y + height * 0.25, right, bottom: bottom - height * 0.12 }
      })`,
    )
    assert.ok(boxes.length > 10)
    for (const [i, one] of boxes.entries()) {
      assert.ok(one.x >= 0 && one.y >= 0 && one.right <= 1600 && one.bottom <= 900, `${what}: ${one.text}`)
      for (const other of boxes.slice(i + 1)) {
        const across = Math.min(one.right, other.right) - Math.max(one.x, other.x)
        const down = Math.min(one.bottom, other.bottom) - Math.max(one.y, other.y)
        assert.ok(across <= 0 || down <= 0, `${what}: ${one.text} and ${other.text}`)
      }
    }
  }
})
