import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openAdmin } from '../../src/admin/server.ts'
import { openTelemetry } from '../../src/app/telemetry.ts'
import { invitationRoute } from '../../src/invite/route.ts'
import { invitationOf } from '../../src/invite/store.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { recordingLog } from '../harness/log.ts'
import { operatorAt, storeAt } from '../harness/store.ts'
import { signup } from '../store/place.ts'

const token = 'for-the-readme-and-nothing-else-at-all'
const NAME = 'Ada <b>"&'

/** The listener of a list on which Ada is invited and Bob is not, and her code. */
async function scene(t: TestContext) {
  const path = join(temporaryFolder(t), 'waitlist.db')
  const store = await storeAt(path)
  await store.admit(signup(NAME, 'Ada@example.com'))
  await store.admit(signup('Bob', 'bob@example.com'))
  const operator = operatorAt(path)
  await operator.invite({}, 1, { eventName: 'waitlist.invited', destinations: [] })
  const [ada] = await Array.fromAsync(operator.contacts({ state: 'invited' }))
  const { log, logged } = recordingLog()
  const admin = await openAdmin({
    host: '127.0.0.1',
    port: 0,
    service: 'Acme',
    version: '0',
    telemetry: openTelemetry(),
    store,
    destinations: [],
    isDraining: () => false,
    invitation: invitationRoute({ store, token, log }),
    log,
  })
  t.after(async () => {
    admin.close()
    await store.close()
  })
  const { code } = ada!.invitation!
  const redeemed = async () => (await store.transaction(tx => invitationOf(tx, code)))?.redeemedAt
  return { admin: admin.origin, code, logged, redeemed }
}

/** A visitor who follows the link, and presses the button, twice: the status and the text of each answer. */
async function visits(ask: (method: 'GET' | 'POST', code: string) => Promise<Response>, code: string) {
  const seen: [number, string][] = []
  for (const method of ['GET', 'GET', 'POST', 'POST'] as const) {
    const response = await ask(method, code)
    assert.equal(response.headers.get('referrer-policy'), 'no-referrer')
    const text = await response.text()
    assert.ok(!text.includes('<b>'), text)
    seen.push([response.status, text.replace(/^.*<\/title>/, '')])
  }
  return seen
}

const ESCAPED = 'Ada &#60;b&#62;&#34;&#38;'
const BUTTON = `<form method="post"><p>Welcome, ${ESCAPED}.</p><button>Come in</button></form>`
const UNKNOWN = 'A'.repeat(22)

test('the route handler for Next.js lets in who presses the button; a link that is followed redeems nothing, and a wrong token fails', async t => {
  const { admin, code, redeemed } = await scene(t)
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
  assert.equal((await ask('GET', code)).status, 200)
  assert.equal(await redeemed(), null)
  assert.deepEqual(await visits(ask, code), [
    [200, BUTTON],
    [200, BUTTON],
    [200, `You are in, ${ESCAPED}.`],
    [200, `You are in, ${ESCAPED}.`],
  ])
  assert.ok((await redeemed()) instanceof Date)
  assert.equal((await ask('GET', UNKNOWN)).status, 404)
})
