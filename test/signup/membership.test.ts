/** `DISCLOSE_MEMBERSHIP=false`: no answer says whether an address was on the list before. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Answer, clientOf } from '../harness/client.ts'
import { contactsIn } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'
import { loopsFake, loopsSettings } from '../providers/loops.fake.ts'

const NEUTRAL = { DISCLOSE_MEMBERSHIP: 'false' }
const ada = { name: 'Ada', email: 'ada@example.com' }

/** An answer without what differs from one to the next. */
const comparable = ({ status, headers, text }: Answer) => {
  const { date: _, ratelimit: __, ...fields } = Object.fromEntries(headers)
  return { status, fields, text }
}

describe('C-60: where membership is not disclosed', { concurrency: true }, () => {
  test('a new address, a known one and one that is held get the same answer', async t => {
    const service = await startService(t, { ...NEUTRAL, HOLD_ABOVE: '1' })
    const { signUp } = await clientOf(service)
    const answers = [ada, ada, { ...ada, email: 'eve@example.com' }, { ...ada, email: 'EVE@example.com' }]
    const [first, ...others] = (await Promise.all(answers.map(each => signUp(each)))).map(comparable)
    assert.equal(first!.status, 200)
    assert.equal(first!.text, '{"success":true,"message":"Your signup is recorded."}')
    assert.ok('set-cookie' in first!.fields)
    for (const other of others) assert.deepEqual(other, first)
    const states = contactsIn(service.databasePath).map(({ state }) => state)
    assert.deepEqual(states.toSorted(), ['held', 'listed'])
  })

  test('no answer comes before 25 ms have passed', async t => {
    const { signUp } = await clientOf(await startService(t, NEUTRAL))
    for (let i = 0; i < 5; i++) {
      const began = performance.now()
      assert.equal((await signUp(ada)).status, 200)
      // Timers may fire a moment early.
      assert.ok(performance.now() - began > 23)
    }
  })

  test('nobody waits for the provider: the hand-over goes on in the background', async t => {
    const fake = loopsFake()
    const vendor = await startReceiver(t, fake.answer)
    vendor.next('hang before')
    const service = await startService(t, { ...NEUTRAL, PROVIDER: 'loops', ...loopsSettings(vendor.url) })
    const { signUp } = await clientOf(service)
    const first = comparable(await signUp(ada))
    assert.equal(first.text, '{"success":true,"message":"Your signup is recorded."}')
    // The first attempt still hangs, so it was not waited for.
    assert.deepEqual(
      contactsIn(service.databasePath).map(({ state }) => state),
      ['pending'],
    )
    assert.deepEqual(comparable(await signUp(ada)), first)
    fake.had('bob@example.com')
    assert.deepEqual(comparable(await signUp({ ...ada, email: 'bob@example.com' })), first)
    await until(() =>
      contactsIn(service.databasePath).some(({ email, state }) => email === 'bob@example.com' && state === 'listed'),
    )
  })
})
