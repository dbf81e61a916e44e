import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Addressee } from '../../src/confirm/store.ts'
import { linksOf, type Purpose, purposes, readToken } from '../../src/links/links.ts'

const NOW = Date.UTC(2026, 10, 1)
const WITHIN = 604_800_000
const base = 'https://waitlist.example.com'
const secret = 'ab'.repeat(32)
const contacts = fc.record({ id: fc.uuid(), email: fc.emailAddress() }, { noNullPrototype: true })

/** The token of a link, which is all of its query. */
function tokenOf(link: string): string {
  const [address, token] = link.split('?token=')
  assert.match(address!, /^https:\/\/waitlist\.example\.com\/(confirm|unsubscribe)$/)
  return token!
}
const made = (purpose: Purpose, contact: Addressee, madeAt = NOW, with_ = secret) =>
  tokenOf(linksOf(base, with_, WITHIN, () => madeAt)[purpose](contact))

test('a link says whose it is, until it expires; one to leave never does', () => {
  fc.assert(
    fc.property(contacts, fc.nat(2 * WITHIN), (contact, later) => {
      const expected = later < WITHIN ? { is: 'good', contact } : { is: 'expired' }
      assert.deepEqual(readToken('confirm', made('confirm', contact), secret, NOW + later), expected)
      assert.deepEqual(readToken('unsubscribe', made('unsubscribe', contact), secret, NOW + 1_000 * later), {
        is: 'good',
        contact,
      })
    }),
  )
})

test('whatever else was made of a token is invalid', () => {
  const purpose = fc.constantFrom(...purposes)
  const broken = fc
    .tuple(
      purpose,
      contacts,
      contacts,
      fc.nat(1_000),
      fc.integer({ min: 1, max: 255 }),
      fc.base64String({ maxLength: 100 }),
    )
    .chain(([purpose, contact, other, at, bits, text]) => {
      const token = made(purpose, contact)
      const bytes = Buffer.from(token, 'base64url')
      const changed = Buffer.from(bytes)
      changed[at % bytes.length]! ^= bits
      const foreign = Buffer.from(made(purpose, other), 'base64url')
      return fc.constantFrom(
        { purpose, token: changed.toString('base64url'), why: 'forged' },
        { purpose, token: token.slice(0, at % token.length), why: 'truncated' },
        { purpose, token: `${token}${text || 'A'}`, why: 'prolonged' },
        { purpose, token: `${token}=`, why: 'padded' },
        { purpose, token: ` ${token}`, why: 'with what base64url does not have' },
        { purpose, token: made(purpose, contact, NOW, 'cd'.repeat(32)), why: 'of another installation' },
        { purpose: purposes.find(each => each !== purpose)!, token, why: 'for another purpose' },
        {
          purpose,
          token: Buffer.concat([foreign.subarray(0, 50), bytes.subarray(50)]).toString('base64url'),
          why: 'of another contact',
        },
        { purpose, token: text, why: 'anything' },
      )
    })
  fc.assert(
    fc.property(broken, ({ purpose, token, why }) => {
      assert.deepEqual(readToken(purpose, token, secret, NOW), { is: 'invalid' }, why)
    }),
    { numRuns: 1_000 },
  )
})
