import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { startService } from '../harness/service.ts'

test('a new address is listed, a known one is told so', async t => {
  const service = await startService(t)
  const client = await clientOf(service)
  const first = await client.signUp({ name: ' Ada Lovelace ', email: 'Ada@Example.com' })
  assert.equal(first.status, 200)
  assert.match(first.json.contactId, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.deepEqual(
    { ...first.json, contactId: '' },
    {
      success: true,
      message: 'You are on the waitlist.',
      contactId: '',
      alreadyExisted: false,
      automationTriggered: true,
    },
  )
  const second = await client.signUp({ name: 'Ada', email: 'ada@example.COM' })
  assert.deepEqual(second.json, {
    success: true,
    message: 'You are already on the waitlist.',
    alreadyExisted: true,
    automationTriggered: false,
  })
})
