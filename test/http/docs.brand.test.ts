import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { brandStyle, contrast, onColour, tokenOf } from '../../src/http/discovery/docs/brand.ts'
import { readLogo } from '../../src/http/logo.ts'
import { OperatorError } from '../../src/waitlist/ports.ts'
import { clientOf } from '../harness/client.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { startService } from '../harness/service.ts'

const style = readFileSync(new URL('../../src/http/discovery/docs/page.css', import.meta.url), 'utf8')

test('contrast is that of WCAG 2.2', () => {
  assert.equal(contrast('#000000', '#ffffff'), 21)
  assert.equal(contrast('#ffffff', '#ffffff'), 1)
  assert.equal(contrast('#767676', '#ffffff').toFixed(2), '4.54')
  assert.equal(contrast('#ffffff', '#0000ff').toFixed(2), '8.59')
})

test('whatever the colour of a brand, all that is written in it or on it can be read, in light and dark', () => {
  const channel = fc.integer({ min: 0, max: 255 }).map(value => value.toString(16).padStart(2, '0'))
  const colour = fc.tuple(channel, channel, channel).map(parts => `#${parts.join('')}`)
  fc.assert(
    fc.property(colour, colour => {
      const brand = brandStyle(style, colour)
      const of = (name: string) =>
        [brand, style].map(text => tokenOf(text, name)).find(([light]) => light !== undefined)!
      for (const theme of [0, 1] as const) {
        const [page, surface, soft, accent, fill, onFill] = [
          'page',
          'surface',
          'accent-soft',
          'accent',
          'fill',
          'on-fill',
        ].map(name => of(name)[theme]) as [string, string, string, string, string, string]
        for (const ground of [page, surface, soft]) assert.ok(contrast(accent, ground) >= 4.5, `${accent} on ${ground}`)
        for (const text of [of('ink'), of('muted')]) assert.ok(contrast(text[theme], soft) >= 4.5, `text on ${soft}`)
        assert.ok(contrast(fill, page) >= 3, `${fill} on ${page}`)
        assert.ok(contrast(onFill, fill) >= 4.5, `${onFill} on ${fill}`)
      }
    }),
    { examples: [['#000000'], ['#ffffff'], ['#ffff00'], ['#808080'], ['#0000ff']] },
  )
})

test('a colour that can be read is taken as it is; BRAND_COLOR is in the page and in its picture for tabs', async t => {
  assert.deepEqual(tokenOf(brandStyle(style, '#b3125a'), 'accent')[0], '#b3125a')
  assert.equal(onColour('#ffd400'), '#000000')
  const { request } = await clientOf(await startService(t, { BRAND_COLOR: '#FFD400' }))
  const { text } = await request('/docs/api')
  assert.match(text, /--fill:light-dark\(#\w{6},#ffd400\)/)
  assert.ok(text.includes('fill%3D%22%23ffd400%22'))
  const plain = await (await clientOf(await startService(t))).request('/docs/api')
  assert.doesNotMatch(plain.text, /ffd400|<img/)
})

const png = (width: number, height: number): Buffer => {
  const bytes = Buffer.alloc(40)
  bytes.write('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}

test('LOGO_FILE: the proportions of a picture are read from it', t => {
  const path = join(temporaryFolder(t), 'logo')
  for (const [content, type, ratio] of [
    [png(300, 100), 'image/png', 3],
    [`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20"/>`, 'image/svg+xml', 2],
    [`<?xml version="1.0"?>\n<!-- a -->\n<svg\n  width='12px' height='24px' fill="#fff">`, 'image/svg+xml', 0.5],
  ] as const) {
    writeFileSync(path, content)
    const logo = readLogo(path)
    assert.equal(logo.url, `data:${type};base64,${Buffer.from(content).toString('base64')}`)
    assert.equal(logo.ratio, ratio)
  }
})

test('LOGO_FILE: what is no such picture stops the start, with a sentence that says why', async t => {
  const folder = temporaryFolder(t)
  const path = join(folder, 'logo')
  const what = 'is neither a PNG picture nor an SVG with a viewBox, or a width and a height'
  for (const [content, why] of [
    ['hello', what],
    ['', what],
    ['<svg xmlns="http://www.w3.org/2000/svg">', what],
    ['<svg viewBox="0 0 10 0">', what],
    [png(0, 10), what],
    [Buffer.concat([png(10, 10), Buffer.alloc(40_000)]), 'is larger than 32 KiB'],
  ] as const) {
    writeFileSync(path, content)
    assert.throws(() => readLogo(path), new OperatorError(`LOGO_FILE: ${path} ${why}`))
  }
  assert.throws(() => readLogo(join(folder, 'none')), /^OperatorError: LOGO_FILE: .* cannot be read: ENOENT/)
  for (const other of [folder, '/dev/zero']) {
    assert.throws(() => readLogo(other), new OperatorError(`LOGO_FILE: ${other} is not a file`))
  }
  assert.throws(() => readLogo(folder), OperatorError)
  writeFileSync(path, 'hello')
  await assert.rejects(startService(t, { LOGO_FILE: path }), {
    name: 'OperatorError',
    message: `LOGO_FILE: ${path} ${what}`,
  })
})
