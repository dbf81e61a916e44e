import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plot } from '../../src/admin/plot.ts'
import { statsIn } from '../charts/figures.ts'

test('a chart is an element of a page, with a title, a summary and a number for each bar', () => {
  const { perHour: bars } = statsIn([1_200, 0, 3])
  const size = { width: 800, height: 200, text: 14 }
  const { html } = plot({ id: 'hours', title: 'A < B', bars, unit: 'hour', timezone: 'UTC', ...size })
  assert.match(html, /^<svg .*<title id="hours-title">A &lt; B<\/title>/)
  assert.match(html, />1,203 signups in 48 hours; the most, 1,200, on Sun 22 Nov, 13:00\.</)
  assert.deepEqual(
    [...html.matchAll(/<path class="([^"]+)"[^>]*><title>([^<]+)/g)].map(([, of, said]) => [of, said]),
    [
      ['bar', 'Sun 22 Nov, 13:00: 1,200'],
      ['bar now', 'Sun 22 Nov, 15:00: 3'],
    ],
  )
})
