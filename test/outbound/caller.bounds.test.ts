import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { freePort } from '../harness/port.ts'
import { calling, classOf, create, impatient, patient, serving } from './misbehaving.ts'

const count = (classes: readonly string[], name: string) => classes.filter(each => each === name).length

describe('the bounds of a caller', { timeout: 60_000 }, () => {
  test('1,000 calls to a side that hangs: few are sent, few wait, and all end by their deadline', async t => {
    const { base, received, connections } = await serving(t, () => {})
    const call = calling(t, base, { rate: { calls: 10, per: 1_000, connections: 10 } })
    const deadline = AbortSignal.timeout(1_500)
    let waiting = 1_000
    const asked = Array.from({ length: 1_000 }, async () => {
      const outcome = await call(create, deadline)
      waiting--
      return outcome
    })
    await new Promise(resolve => setTimeout(resolve, 300))
    assert.ok(waiting <= 60, `${waiting} wait: 10 connections, and what can begin in five seconds`)
    const classes = (await Promise.all(asked)).map(classOf)
    assert.equal(count(classes, 'unclear'), received.length, 'what was received may have taken effect')
    assert.equal(count(classes, 'unreached'), 1_000 - received.length, 'and nothing else was received')
    assert.ok(connections() <= 10)
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
    const outcomes = await Promise.all(Array.from({ length: 50 }, () => call(create, patient())))
    assert.deepEqual(outcomes.map(classOf), Array(50).fill('answered'))
    assert.equal(most, 3)
    assert.equal(connections(), 3)
  })

  test('after five calls without an answer nobody is made to wait for a side that is down', async t => {
    const { base, received } = await serving(t, response => response.writeHead(500).end())
    const call = calling(t, base)
    const classes: string[] = []
    for (let i = 0; i < 20; i++) classes.push(classOf(await call(create, patient())))
    assert.deepEqual(classes, [...Array(5).fill('unclear'), ...Array(15).fill('unreached')])
    assert.equal(received.length, 5)
  })

  test('those who waited for their turn when the side was found to be down are not sent', async t => {
    const { base, received } = await serving(t, response => response.socket?.resetAndDestroy())
    const call = calling(t, base, { rate: { calls: 1_000, per: 1_000, connections: 1 } })
    const outcomes = await Promise.all(Array.from({ length: 30 }, () => call(create, patient())))
    assert.deepEqual(outcomes.map(classOf), [...Array(5).fill('unclear'), ...Array(25).fill('unreached')])
    assert.equal(received.length, 5)
  })

  test('a side that refuses answers: 4xx never hold anybody back', async t => {
    const { base, received } = await serving(t, response => response.writeHead(401).end())
    const call = calling(t, base)
    for (let i = 0; i < 10; i++) assert.equal(classOf(await call(create, patient())), 'answered')
    assert.equal(received.length, 10)
  })

  test('a port without a listener counts as no answer', async t => {
    const call = calling(t, `http://127.0.0.1:${await freePort()}`)
    for (let i = 0; i < 5; i++) await call(create, patient())
    const outcome = await call(create, patient())
    assert.match(outcome.is === 'unreached' ? outcome.why : '', /not called, the last calls were not answered/)
  })

  test('a call that is under way when the caller is closed ends; so do those that wait and those that come', async t => {
    const { base, received } = await serving(t, () => {})
    const { caller } = await import('../../src/outbound/caller.ts')
    const rate = { calls: 100, per: 1_000, connections: 1 }
    const { call, close } = caller({ base, headers: {}, rate })
    const asked = [call(create, patient()), call(create, patient())]
    while (received.length === 0) await new Promise(resolve => setTimeout(resolve, 10))
    await close()
    const classes = (await Promise.all([...asked, call(create, impatient())])).map(classOf)
    assert.deepEqual(classes, ['unclear', 'unreached', 'unreached'])
    assert.equal(received.length, 1)
  })
})
