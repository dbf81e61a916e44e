import assert from 'node:assert/strict'
import { registerHooks } from 'node:module'
import { test } from 'node:test'
import { assertRefused, clientOf } from '../harness/client.ts'
import { startService } from '../harness/service.ts'

test('C-58: when the code of the documentation cannot be read, that is a 500, and the next reader gets the page', async t => {
  const { request } = await clientOf(await startService(t))
  const hooks = registerHooks({
    load(url, context, next) {
      if (url.includes('/discovery/docs/')) throw new Error('EMFILE: too many open files')
      return next(url, context)
    },
  })
  t.after(() => hooks.deregister())
  assertRefused(await request('/docs/api'), 500)
  hooks.deregister()
  assert.equal((await request('/docs/api')).status, 200)
})
