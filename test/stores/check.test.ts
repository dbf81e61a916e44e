import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checked } from '../../src/stores/check.ts'
import { type Admission, StoreUnavailable } from '../../src/waitlist/ports/signups.ts'

const listed: Admission = { is: 'listed now', contactId: '1' }
const known: Admission = { is: 'already listed' }
const full = new StoreUnavailable('full')

/** A store that answers signups and trials as told, and a clock that stands until it is moved. */
function stage() {
  const here = { now: 1_000_000, answer: (): readonly Admission[] => [listed], trials: 0, trial: async () => {} }
  const { admit, check } = checked(
    async () => here.answer(),
    () => {
      here.trials++
      return here.trial()
    },
    () => here.now,
  )
  const refused = () =>
    admit([]).then(
      () => assert.fail('it was stored'),
      () => {},
    )
  return { here, admit, check, refused }
}

test('without signups each check makes a trial, whose end it tells', async () => {
  const { here, check } = stage()
  await check()
  here.trial = () => Promise.reject(full)
  await assert.rejects(check(), full)
  assert.equal(here.trials, 2)
})

test('for a second after a signup was stored, no check makes a trial', async () => {
  const { here, admit, check } = stage()
  here.trial = () => Promise.reject(full)
  await admit([])
  here.now += 999
  await check()
  assert.equal(here.trials, 0)
  here.now += 1
  await assert.rejects(check(), full)
})

test('a known address shows nothing: nothing was written for it', async () => {
  const { here, admit, check } = stage()
  here.answer = () => [known, known]
  await admit([])
  await check()
  assert.equal(here.trials, 1)
  here.answer = () => [known, listed]
  await admit([])
  await check()
  assert.equal(here.trials, 1)
})

test('for two seconds after a signup was refused, a trial is not believed, nor made', async () => {
  const { here, check, refused } = stage()
  here.answer = () => {
    throw full
  }
  await refused()
  here.now += 1_999
  await assert.rejects(check(), full)
  assert.equal(here.trials, 0)
  here.now += 1
  await check()
  assert.equal(here.trials, 1)
})
