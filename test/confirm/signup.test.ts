import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { type Answer, clientOf } from '../harness/client.ts'
import { sqlOn } from '../harness/database.ts'
import { until } from '../harness/program.ts'
import { startService } from '../harness/service.ts'

/** Nobody listens there. */
const mails = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'hello@example.com' }
const asking = { ...mails, CONFIRM: 'mail', BASE_URL: 'https://waitlist.example.com' }
const ada = { name: 'Ada', email: 'ada@example.com' }

async function opened(t: TestContext, env: Record<string, string>) {
  const service = await startService(t, env)
  const { signUp } = await clientOf({ baseUrl: service.origin })
  return { service, signUp, sql: sqlOn(service.databasePath) }
}

const heard = ({ status, headers, text }: Answer) => ({ status, cookie: headers.get('set-cookie'), text })

describe('a signup whose address is to be confirmed', () => {
  test('is told so, however often it is sent, and nothing of when and whether a mail was sent again', async t => {
    const { signUp, sql } = await opened(t, asking)
    const first = await signUp(ada)
    assert.equal(
      first.text,
      '{"success":true,"message":"Please confirm the mail that we have sent you.","alreadyExisted":false,"automationTriggered":false}',
    )
    assert.equal(first.status, 200)
    assert.ok(first.headers.get('set-cookie') !== null)
    assert.deepEqual(heard(await signUp({ ...ada, name: 'Somebody else' })), heard(first))
    await sql("update delivery set state = 'delivered', token = null, settled_at = 0")
    assert.deepEqual(heard(await signUp(ada)), heard(first))
    assert.deepEqual(
      (await sql('select name, confirmations_sent as mails from contact')).map(row => ({ ...row })),
      [{ name: 'Ada', mails: 2 }],
    )
    await sql("update delivery set state = 'delivered', token = null, settled_at = 0")
    await sql('update contact set confirmations_sent = 4')
    assert.deepEqual(heard(await signUp(ada)), heard(first))
  })

  test('is told what everybody hears where membership is not disclosed: new, asked before, on the list, held', async t => {
    const { signUp, sql } = await opened(t, { ...asking, DISCLOSE_MEMBERSHIP: 'false', HOLD_ABOVE: '2' })
    const first = await signUp(ada)
    assert.equal(
      first.text,
      '{"success":true,"message":"Your signup is recorded. If you receive a mail from us, please confirm it."}',
    )
    await signUp({ ...ada, email: 'bob@example.com' })
    await sql(
      "update contact set state = 'listed', confirmation_sent_at = null, confirmations_sent = null where email = 'bob@example.com'",
    )
    for (const email of [ada.email, 'bob@example.com', 'held@example.com', 'held@example.com']) {
      assert.deepEqual(heard(await signUp({ ...ada, email })), heard(first), email)
    }
    const states = await sql('select state from contact order by number')
    assert.deepEqual(
      states.map(({ state }) => state),
      ['unconfirmed', 'listed', 'held'],
    )
  })

  test('goes on at once when nobody has to confirm any more; its mail is not sent', async t => {
    const { service: before, signUp: signUpBefore } = await opened(t, asking)
    await signUpBefore(ada)
    await signUpBefore({ ...ada, email: 'bob@example.com' })
    await before.stop()
    const sql = sqlOn(before.databasePath)
    await sql('update delivery set due_at = 0')
    const { signUp } = await opened(t, { ...mails, DATABASE_URL: `sqlite:${before.databasePath}` })
    const { json } = await signUp(ada)
    assert.deepEqual(
      [json.message, json.alreadyExisted, json.automationTriggered],
      ['You are on the waitlist.', false, true],
    )
    assert.equal((await signUp(ada)).json.alreadyExisted, true)
    const asked = "select email, why from delivery join contact on contact.number = contact where kind = 'confirmation'"
    await until(async () => (await sql(asked))[0]!.why === 'confirmations were turned off')
    assert.deepEqual(
      (await sql(asked)).map(({ email }) => email),
      ['bob@example.com'],
    )
  })
})
