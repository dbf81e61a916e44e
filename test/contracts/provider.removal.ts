import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { allVendors } from '../../src/providers/list.ts'
import type { Removal } from '../../src/waitlist/ports/provider.ts'
import { type Received, startReceiver, tookEffect } from '../harness/receiver.ts'
import { contactOf, isFailure, met, opened, type VendorUnderTest } from './provider.ts'

const vendors = await allVendors()

/** Each could be taken for another one, by a search, a pattern or an encoding. */
// biome-ignore format: a list to be read as one
const lookalikes = [
  'ada@example.com', 'xada@example.com', 'ada@example.com.au', 'ada@example.co', 'a.a@example.com', 'axa@example.com',
  'ada+1@example.com', 'ada%2b1@example.com', 'ad%61@example.com', '_da@example.com', '%@example.com', '*@example.com',
  'ada/bob@example.com', 'bob@example.com', 'a?b=c&d#e@example.com', "o'neil@example.com", 'o|neil@example.com',
  'neil@example.com', '{ada}@example.com', '^a$@example.com', 'a`b!c~d@example.com',
]

/** What this, as the answer to the last call of a removal, is taken for; other answers may be done by their status alone. */
const classOf: Readonly<Record<string, Removal['is']>> = { 'reset after': 'unclear', '503': 'unreached' }

/** `remove` of `Provider` (waitlist/ports/provider.ts), held against a fake of the vendor. */
export function removalContract(under: VendorUnderTest): void {
  const never = new AbortController().signal
  const ada = 'ada@example.com'
  const { promises } = vendors[under.vendor]
  const isByHand = promises.removal === 'by hand'

  const started = async (t: TestContext, change: Record<string, string> = {}) => {
    const fake = under.fake()
    const server = await startReceiver(t, fake.answer)
    return { fake, server, provider: await opened(t, under, { ...under.settings(server.url), ...change }) }
  }

  /** The calls that it takes to remove somebody. */
  async function callsOf(t: TestContext): Promise<number> {
    const { fake, server, provider } = await started(t)
    fake.had(ada)
    await provider.remove(ada, never)
    return server.received.length
  }

  function assertDiscreet(said: Removal, url: string): void {
    if (!('why' in said)) return
    assert.notEqual(said.why, '')
    assert.doesNotMatch(said.why, /@/)
    for (const [name, value] of Object.entries(under.settings(url))) {
      if (/KEY|TOKEN/.test(name)) assert.ok(!said.why.includes(value), said.why)
    }
  }

  describe('a removal', { concurrency: true }, () => {
    if (isByHand) {
      test('of somebody says what to do by hand, and changes nothing', async t => {
        const { fake, provider } = await started(t)
        fake.had(ada)
        const before = structuredClone(fake.kept(ada))
        const said = await provider.remove('Ada@Example.com', never)
        assert.ok(said.is === 'by hand', JSON.stringify(said))
        assert.match(said.how, /^[a-z][^@\n]{20,120}[^.]$/)
        assert.deepEqual(fake.kept(ada), before)
      })
    } else {
      test('erases who was there before and who was created here, however the address is typed', async t => {
        const { fake, provider } = await started(t)
        fake.had(ada)
        await provider.createContact(contactOf('bob@example.com'), false, never)
        assert.equal(fake.count('bob@example.com'), 1)
        for (const [typed, email] of [
          ['Ada@Example.com', ada],
          ['bob@example.com', 'bob@example.com'],
        ] as const) {
          assert.deepEqual(await provider.remove(typed, never), { is: 'removed' })
          assert.deepEqual([fake.count(email), fake.kept(email)], [0, undefined])
        }
      })

      test('erases nobody but the one with this very address', async t => {
        const { fake, provider } = await started(t)
        for (const email of lookalikes) fake.had(email)
        for (const [i, email] of lookalikes.entries()) {
          assert.deepEqual(await provider.remove(email, never), { is: 'removed' }, email)
          const left = lookalikes.filter(each => fake.count(each) > 0)
          assert.deepEqual(left, lookalikes.slice(i + 1), `after ${email}`)
        }
      })
    }

    test('of nobody is absent, if that can be told, and changes nobody', async t => {
      const { fake, provider } = await started(t)
      for (const email of lookalikes) fake.had(email)
      const before = JSON.stringify(lookalikes.map(email => fake.kept(email)))
      assert.deepEqual(await provider.remove('da@example.com', never), {
        is: promises.newness === 'none' ? 'removed' : 'absent',
      })
      assert.equal(JSON.stringify(lookalikes.map(email => fake.kept(email))), before)
    })

    test('of what is no address asks nobody, whose id it may be', async t => {
      const { fake, server, provider } = await started(t)
      fake.had(ada)
      const { id = '1' } = fake.kept(ada) as { id?: unknown }
      for (const typed of [
        '',
        '*',
        '..',
        '@',
        'ada',
        'ada@',
        '@example.com',
        '"a"@example.com',
        `${ada}?`,
        String(id),
      ]) {
        assert.deepEqual(await provider.remove(typed, never), { is: 'absent' }, typed)
      }
      assert.deepEqual([server.received.length, fake.count(ada)], [0, 1])
    })

    test('that is told of somebody else erases nobody', async t => {
      const fake = under.fake()
      for (const email of [ada, 'bob@example.com']) fake.had(email)
      const isLookup = ({ method, path }: Received) => method === 'GET' || path.endsWith('/lookup')
      const server = await startReceiver(t, asked =>
        fake.answer(isLookup(asked) ? JSON.parse(JSON.stringify(asked).replaceAll('ada', 'bob')) : asked),
      )
      const provider = await opened(t, under, under.settings(server.url))
      const said = await provider.remove(ada, never)
      assert.equal(fake.count('bob@example.com'), 1)
      if (isByHand) assert.equal(said.is, 'absent')
    })

    test('with a key that the vendor does not know is our mistake', async t => {
      const { fake, server, provider } = await started(t, under.wrongKey)
      fake.had(ada)
      for (const email of [ada, 'nobody@example.com']) {
        const said = await provider.remove(email, never)
        assert.equal(said.is, 'misconfigured', JSON.stringify(said))
        assertDiscreet(said, server.url)
      }
      assert.equal(fake.count(ada), 1)
    })

    test('at an address that knows no such path says of nobody that they are absent', async t => {
      for (const body of ['<html><h1>404 Not Found</h1></html>', { error: 'Not Found' }, '']) {
        const server = await startReceiver(t, () => ({ status: 404, body }))
        const provider = await opened(t, under, under.settings(server.url))
        const said = await provider.remove(ada, never)
        assert.equal(said.is, 'misconfigured', JSON.stringify(said))
      }
    })

    test('that is stopped before it begins sends nothing', async t => {
      const { fake, server, provider } = await started(t)
      fake.had(ada)
      assert.equal((await provider.remove(ada, AbortSignal.abort())).is, 'unreached')
      assert.deepEqual([server.received.length, fake.count(ada)], [0, 1])
    })

    test('that is refused in unknown words, at any of its calls, is not done', async t => {
      const calls = await callsOf(t)
      const { fake, server, provider } = await started(t)
      fake.had(ada)
      for (const status of [400, 403, 409, 422] as const) {
        for (let answered = 0; answered < calls; answered++) {
          server.next(...Array(answered).fill(null), `${status} of unknown wording`)
          const said = await provider.remove(ada, never)
          assert.ok(isFailure(said), `${status}, call ${answered + 1}: ${JSON.stringify(said)}`)
          assertDiscreet(said, server.url)
          assert.equal(fake.count(ada), 1)
        }
      }
    })

    test('that fails, or makes no sense, at any of its calls, is taken for what it is, and done when repeated', async t => {
      const calls = await callsOf(t)
      const done = isByHand ? ['by hand'] : ['removed', 'absent']
      for (const what of met) {
        const { fake, server, provider } = await started(t)
        for (let answered = 0; answered < calls; answered++) {
          fake.had(ada)
          server.next(...Array(answered).fill(null), what)
          const said = await provider.remove(ada, never)
          const where = `${what}, call ${answered + 1}: ${JSON.stringify(said)}`
          assertDiscreet(said, server.url)
          if (!isByHand && answered === calls - 1) {
            assert.ok(isFailure(said) || said.is === 'removed', where)
            assert.equal(said.is, classOf[what] ?? said.is, where)
          } else assert.equal(said.is, 'unreached', where)
          if (said.is === 'unreached' || !tookEffect(what)) {
            assert.equal(fake.count(ada), said.is === 'removed' ? 0 : 1, where)
          }
          const again = await provider.remove(ada, never)
          assert.ok(done.includes(again.is), `${where}, then ${JSON.stringify(again)}`)
          if (!isByHand) assert.equal(fake.count(ada), 0, where)
        }
      }
    })
  })
}
