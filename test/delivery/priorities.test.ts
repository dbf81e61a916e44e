import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bulk, forEachEngine, signup } from '../store/place.ts'

forEachEngine('deliveries to one destination', place => {
  test('confirmations go before welcomes, and those before invitations', async t => {
    const here = await place(t)
    const before = await here.open({ destinations: ['mail'] })
    for (const name of ['Ada', 'Grace']) await before.admit(signup(name, `${name}@example.com`))
    await here.operator.invite({}, 2, { eventName: 'waitlist.invited', destinations: ['mail'] }, bulk)
    await here.sql("update delivery set due_at = 0 where kind = 'invited'")
    await before.close()
    const store = await here.open({ destinations: ['mail'], confirmation: 'mail' })
    await store.admit(signup('Eve', 'eve@example.com'))
    const claimed = [...(await store.claim('mail', 2)), ...(await store.claim('mail', 10))]
    assert.deepEqual(
      claimed.map(({ kind, contact: { name } }) => [kind, name]),
      [
        ['confirmation', 'Eve'],
        ['joined', 'Ada'],
        ['joined', 'Grace'],
        ['invited', 'Ada'],
        ['invited', 'Grace'],
      ],
    )
  })
})
