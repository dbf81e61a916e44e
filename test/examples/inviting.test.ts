import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { sqlOn } from '../harness/database.ts'
import { startService } from '../harness/service.ts'
import { operatorAt } from '../harness/store.ts'

const token = 'for-the-readme-and-nothing-else-at-all'

/** The listener of a list on which Ada is invited, and her code. */
async function scene(t: TestContext) {
  const { baseUrl, adminOrigin, databasePath } = await startService(t, {
    ADMIN_LISTEN: '127.0.0.1:0',
    ADMIN_TOKEN: token,
  })
  const body = JSON.stringify({ name: 'Ada <b>"&', email: 'ada@example.com' })
  await fetch(`${baseUrl}/api/waitlist`, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  await operatorAt(databasePath).invite({}, 1, { eventName: 'waitlist.invited', destinations: [] })
  const row = async () => {
    const [ada] = await sqlOn(databasePath)('select code, redeemed_at from contact')
    return ada as { code: string; redeemed_at: number | null }
  }
  return { admin: adminOrigin!, code: (await row()).code, redeemedAt: async () => (await row()).redeemed_at }
}

const ESCAPED = 'Ada &#60;b&#62;&#34;&#38;'
const BUTTON = `<form method="post"><p>Welcome, ${ESCAPED}.</p><button>Come in</button></form>`

test('the route handler for Next.js lets in who presses the button; a link that is followed redeems nothing, and a wrong token fails', async t => {
  const { admin, code, redeemedAt } = await scene(t)
  const handlers = await import('../../examples/nextjs/app/invited/route.ts')
  const set = (ADMIN_TOKEN: string) => Object.assign(process.env, { WAITLIST_ADMIN: admin, ADMIN_TOKEN })
  t.after(() => {
    delete process.env.WAITLIST_ADMIN
    delete process.env.ADMIN_TOKEN
  })
  const ask = (method: 'GET' | 'POST', code: string) =>
    handlers[method](new Request(`https://app.acme.example/invited?code=${code}`, { method }))
  set('another-token-that-is-as-long-as-ours')
  await assert.rejects(ask('POST', code), /Waitlist answers with 401/)
  set(token)
  for (const [method, text] of [
    ['GET', BUTTON],
    ['GET', BUTTON],
    ['POST', `You are in, ${ESCAPED}.`],
    ['POST', `You are in, ${ESCAPED}.`],
  ] as const) {
    if (method === 'GET') assert.equal(await redeemedAt(), null)
    const response = await ask(method, code)
    assert.deepEqual([response.status, response.headers.get('referrer-policy')], [200, 'no-referrer'])
    assert.equal((await response.text()).replace(/^.*<\/title>/, ''), text)
  }
  assert.ok((await redeemedAt())! > 0)
  assert.equal((await ask('GET', 'A'.repeat(22))).status, 404)
})
