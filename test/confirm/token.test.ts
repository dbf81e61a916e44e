import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { linksOf, type Purpose, purposes, readToken } from '../../src/confirm/token.ts'

const NOW = Date.UTC(2026, 10, 1)
const WEEK = 604_800_000
const secret = 'ab'.repeat(32)
const contacts = fc.record(
  {
    id: fc.uuid(),
    createdAt: fc.date({ min: new Date('1969-01-01'), max: new Date('2100-01-01'), noInvalidDate: true }),
  },
  { noNullPrototype: true },
)

function tokenFor(purpose: Purpose, contact: { id: string; createdAt: Date }, with_ = secret): string {
  const link = linksOf('https://waitlist.example.com', with_, () => NOW)[purpose](contact)
  const [address, token] = link.split('?token=')
  assert.equal(address, `https://waitlist.example.com/${purpose}`)
  return token!
}

test('a token names the signup that it was made for; to confirm it is good for a week, to leave for ever', () => {
  fc.assert(
    fc.property(contacts, fc.nat(2 * WEEK), (contact, later) => {
      const read = (purpose: Purpose) => readToken(purpose, tokenFor(purpose, contact), secret, NOW + later)
      assert.deepEqual(read('confirm'), { contact, hasExpired: later >= WEEK })
      assert.deepEqual(read('unsubscribe'), { contact, hasExpired: false })
    }),
  )
})

test('anything else is no token', () => {
  const broken = fc
    .tuple(fc.constantFrom(...purposes), contacts, fc.nat(1_000), fc.integer({ min: 1, max: 255 }))
    .chain(([purpose, contact, at, bits]) => {
      const token = tokenFor(purpose, contact)
      const changed = Buffer.from(token, 'base64url')
      changed[at % changed.length]! ^= bits
      return fc.constantFrom(
        [purpose, changed.toString('base64url'), 'one byte changed'] as const,
        [purpose, token.slice(0, at % token.length), 'truncated'] as const,
        [purpose, `${token}A`, 'longer'] as const,
        [purpose, `${token}=`, 'padded'] as const,
        [purpose, ` ${token}`, 'with a space'] as const,
        [purpose, tokenFor(purpose, contact, 'cd'.repeat(32)), 'of another installation'] as const,
        [purposes.find(each => each !== purpose)!, token, 'for another purpose'] as const,
      )
    })
  fc.assert(
    fc.property(broken, ([purpose, token, what]) => {
      assert.equal(readToken(purpose, token, secret, NOW), null, what)
    }),
    { numRuns: 500 },
  )
})
