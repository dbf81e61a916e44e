import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { attempting } from '../../src/outbound/attempt.ts'
import { alone, calling, classOf, create, impatient, never, patient, serving } from './misbehaving.ts'

const count = (classes: readonly string[], name: string) => classes.filter(each => each === name).length

describe('the bounds of a caller', { concurrency: true, timeout: 60_000 }, () => {
  test('1,000 calls to a side that hangs: few are sent, few wait, and all end in their time', async t => {
    const { base, received, connections } = await serving(t, () => {})
    const call = calling(t, base, { rate: { calls: 10, per: 1_000, connections: 10 } })
    let waiting = 1_000
    const began = performance.now()
    const asked = Array.from({ length: 1_000 }, async () => {
      const outcome = await call(create, 1_500)
      waiting--
      return outcome
    })
    while (received.length < 10) await new Promise(resolve => setTimeout(resolve, 10))
    const most = 50 + 10 * Math.floor((performance.now() - began) / 1_000)
    assert.ok(waiting <= most, `${waiting} wait: 10 that were sent each second, and 40 that can begin in the next four`)
    assert.equal(connections(), 10)
    const classes = (await Promise.all(asked)).map(classOf)
    assert.equal(count(classes, 'unclear'), received.length, 'what was received may have taken effect')
    assert.equal(count(classes, 'unreached'), 1_000 - received.length, 'and nothing else was received')
  })

  test('no more calls at once than the vendor allows, and no more connections', async t => {
    let atOnce = 0
    let most = 0
    const { base, connections } = await serving(t, response => {
      most = Math.max(most, ++atOnce)
      setTimeout(() => {
        atOnce--
        response.end('{}')
      }, 5)
    })
    const call = calling(t, base, { rate: { calls: 1_000, per: 1_000, connections: 3 } })
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => call(create, patient)))
    assert.deepEqual(outcomes.map(classOf), Array(50).fill('answered'))
    assert.equal(most, 3)
    assert.equal(connections(), 3)
  })

  test('a call whose turn comes too late is refused at once, and says that it was not sent', async t => {
    const { base, received } = await serving(t, response => response.end('{}'))
    const call = calling(t, base, { rate: { calls: 1, per: 6_000, connections: 1 } })
    await call(create, patient)
    const outcome = await call(create, patient)
    assert.equal(classOf(outcome), 'unreached')
    assert.ok(outcome.is === 'unreached' && outcome.notSent === true && outcome.retryAfter === undefined)
    assert.equal(received.length, 1)
  })

  test('the calls of one attempt share its time: the second one hangs for what the first has left', async t => {
    let left = () => Number.NaN
    let leftForSecond = Number.NaN
    const { base, received } = await serving(t, (response, { url }) => {
      if (url === '/first') setTimeout(() => response.end('{}'), 1_000)
      else leftForSecond = left()
    })
    const { caller } = await import('../../src/outbound/caller.ts')
    const rate = { calls: 100, per: 1_000, connections: 2 }
    const { call, close } = caller({ base, headers: {}, rate })
    t.after(close)
    const outcome = await attempting(2_500, never, async attempt => {
      left = attempt.left
      assert.equal((await call({ ...create, path: '/first' }, attempt)).is, 'answered')
      return call(create, attempt)
    })
    assert.ok(leftForSecond <= 1_500, `${leftForSecond} ms were left`)
    assert.equal(classOf(outcome), 'unclear')
    assert.equal(received.length, 2)
  })

  test('a call that is under way when the caller is closed ends; so do those that wait and those that come', async t => {
    const { base, received } = await serving(t, () => {})
    const { caller } = await import('../../src/outbound/caller.ts')
    const rate = { calls: 100, per: 1_000, connections: 1 }
    const { call: attempted, close } = caller({ base, headers: {}, rate })
    const call = alone(attempted)
    const asked = [call(create, patient), call(create, patient)]
    while (received.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    await close()
    const classes = (await Promise.all([...asked, call(create, impatient)])).map(classOf)
    assert.deepEqual(classes, ['unclear', 'unreached', 'unreached'])
    assert.equal(received.length, 1)
  })
})
