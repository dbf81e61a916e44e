import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { freePort } from '../harness/port.ts'
import { startService } from '../harness/service.ts'

const PATH = '/.well-known/security.txt'
const DAY = 86_400_000

/** The lines of a file of RFC 9116 §4: a name, a colon, a space and a value. */
function fieldsOf(text: string): readonly (readonly [name: string, value: string])[] {
  assert.ok(text.endsWith('\n'))
  return text
    .slice(0, -1)
    .split('\n')
    .map(line => {
      const [, name, value] = /^([A-Z][A-Za-z-]+): ([\x21-\x7e]+)$/.exec(line) ?? assert.fail(line)
      return [name!, value!] as const
    })
}

test('C-105: SECURITY_CONTACT is told in security.txt, in its order, with the address of the file itself', async t => {
  const port = await freePort()
  const contacts = ['mailto:security@example.org', 'https://example.org/security?a=b', 'tel:+1-201-555-0123']
  await startService(t, {
    BASE_URL: 'https://waitlist.example.org',
    PORT: String(port),
    SECURITY_CONTACT: contacts.join(', '),
  })
  const { request } = await clientOf({ baseUrl: `http://127.0.0.1:${port}` })
  const { status, headers, text } = await request(PATH)
  assert.deepEqual([status, headers.get('content-type')], [200, 'text/plain; charset=utf-8'])
  const [expires, ...others] = fieldsOf(text).toSorted(([a], [b]) => Number(b === 'Expires') - Number(a === 'Expires'))
  assert.equal(expires![0], 'Expires')
  assert.deepEqual(others, [
    ...contacts.map(contact => ['Contact', contact]),
    ['Canonical', `https://waitlist.example.org${PATH}`],
  ])
})

test('C-105: it never expires while the service runs, and is valid for less than a year', async t => {
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() })
  const { request } = await clientOf(await startService(t, { SECURITY_CONTACT: 'mailto:security@example.org' }))
  const tags = new Set<string>()
  for (const days of [0, 1, 400]) {
    t.mock.timers.setTime(Date.now() + days * DAY)
    const { headers, text } = await request(PATH)
    const fields = new Map(fieldsOf(text))
    const left = Date.parse(fields.get('Expires')!) - Date.now()
    assert.ok(left > 90 * DAY && left < 365 * DAY, text)
    assert.equal(fields.has('Canonical'), false, 'an http address cannot be one (RFC 9116 §2.5.2)')
    tags.add(headers.get('etag')!)
  }
  assert.equal(tags.size, 3)
})
