import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { clientOf } from '../harness/client.ts'
import { sqlOn } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { startService } from '../harness/service.ts'

/** Nobody listens there. */
const mails = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'hello@example.com' }
const confirming = { ...mails, CONFIRM: 'mail', BASE_URL: 'https://waitlist.example.com' }
const ada = { name: 'Ada', email: 'ada@example.com' }

async function opened(t: TestContext, env: Record<string, string>) {
  const service = await startService(t, env)
  const { signUp } = await clientOf({ baseUrl: service.origin })
  /** All that a visitor can tell answers apart by. */
  async function answerTo(signup: object) {
    const { status, headers, text } = await signUp(signup)
    return { status, cookie: headers.get('set-cookie'), text }
  }
  return { service, signUp, answerTo, sql: sqlOn(service.databasePath) }
}

test('the answer is the same however often an unconfirmed address is sent, whether or not a mail is sent again', async t => {
  const { answerTo, sql } = await opened(t, confirming)
  const first = await answerTo(ada)
  assert.equal(
    first.text,
    '{"success":true,"message":"Please confirm the mail that we have sent you.","alreadyExisted":false,"automationTriggered":false}',
  )
  assert.ok(first.status === 200 && first.cookie !== null)
  assert.deepEqual(await answerTo({ ...ada, name: 'Somebody else' }), first)
  await sql("update delivery set state = 'delivered', token = null, settled_at = 0")
  assert.deepEqual(await answerTo(ada), first)
  assert.deepEqual((await sql('select name, confirmations_sent as mails from contact')).map(Object.values), [
    ['Ada', 2],
  ])
  await sql("update delivery set state = 'delivered', token = null, settled_at = 0")
  await sql('update contact set confirmations_sent = 4')
  assert.deepEqual(await answerTo(ada), first)
})

test('where membership is not disclosed everybody gets one answer: new, unconfirmed, on the list, held', async t => {
  const { answerTo, sql } = await opened(t, { ...confirming, DISCLOSE_MEMBERSHIP: 'false', HOLD_ABOVE: '2' })
  const first = await answerTo(ada)
  assert.equal(
    first.text,
    '{"success":true,"message":"Your signup is recorded. If you receive a mail from us, please confirm it."}',
  )
  await answerTo({ ...ada, email: 'bob@example.com' })
  await sql(
    "update contact set state = 'listed', confirmation_sent_at = null, confirmations_sent = null where email = 'bob@example.com'",
  )
  for (const email of [ada.email, 'bob@example.com', 'held@example.com', 'held@example.com']) {
    assert.deepEqual(await answerTo({ ...ada, email }), first, email)
  }
  assert.deepEqual(
    (await sql('select state from contact order by number')).map(({ state }) => state),
    ['unconfirmed', 'listed', 'held'],
  )
})

test('who signs up again when nobody has to confirm any more joins at once; mails that wait are not sent', async t => {
  const { service, answerTo, sql } = await opened(t, confirming)
  await answerTo(ada)
  await answerTo({ ...ada, email: 'bob@example.com' })
  await service.stop()
  await sql('update delivery set due_at = 0')
  const { signUp } = await opened(t, { ...mails, DATABASE_URL: `sqlite:${service.databasePath}` })
  const { json } = await signUp(ada)
  assert.deepEqual([json.alreadyExisted, json.automationTriggered], [false, true])
  assert.equal((await signUp(ada)).json.alreadyExisted, true)
  const waiting = () =>
    sql("select email, why from delivery join contact on contact.number = contact where kind = 'confirmation'")
  await until(async () => (await waiting())[0]!.why === 'confirmations were turned off')
  assert.deepEqual(
    (await waiting()).map(({ email }) => email),
    ['bob@example.com'],
  )
})
