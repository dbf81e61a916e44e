/** `CONFIRM=mail`, from a signup to the list and out of it again, with a mail server and a mail scanner. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import PostalMime from 'postal-mime'
import { pageSentences } from '../../src/http/messages/sentences.ts'
import { clientOf } from '../harness/client.ts'
import { withDatabase } from '../harness/database.ts'
import { type ReceivedMail, startMailServer } from '../harness/mail-server.ts'
import { until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'

const BASE_URL = 'https://waitlist.acme.example'
const ada = { name: 'Ada', email: 'Ada@example.com' }

async function stage(t: TestContext) {
  const server = await startMailServer(t)
  const receiver = await startReceiver(t, () => ({ status: 204 }))
  const service = await startService(t, {
    ...{ CONFIRM: 'mail', BASE_URL, TRUST_PROXY: '1', SERVICE_NAME: 'Acme', MAIL_RATE: '6000' },
    ...{ SMTP_URL: `smtp://${server.host}:${server.port}`, MAIL_FROM: 'hello@acme.example' },
    ...{ WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: `whsec_${Buffer.alloc(32).toString('base64')}` },
  })
  const { signUp } = await clientOf({ baseUrl: service.origin })
  /** All that is stored of contacts and their deliveries. */
  const stored = () =>
    withDatabase(service.databasePath, database =>
      ['select * from contact order by number', 'select * from delivery order by number'].map(query =>
        database.prepare(query).all(),
      ),
    )
  const states = () =>
    withDatabase(service.databasePath, database => database.prepare('select state, email from contact').all()).map(
      ({ state, email }) => [state, email],
    )
  /** The addresses in a mail: in its text, in its HTML and in its head. */
  async function linksIn({ source }: ReceivedMail) {
    const { text = '', html = '', headers } = await PostalMime.parse(source)
    const head = headers.filter(({ key }) => key.startsWith('list-')).map(({ value }) => value)
    const all = [text, html, ...head].flatMap(part => part.match(/https:[^\s"<>]+/g) ?? [])
    const here = [...new Set(all)].map(link => link.replace(BASE_URL, service.origin))
    const to = (path: string) => here.find(link => link.startsWith(service.origin + path)) ?? ''
    return { all: here, confirm: to('/confirm'), unsubscribe: to('/unsubscribe') }
  }
  /** What the page says after a press of its button. */
  async function press(link: string, init: RequestInit = {}) {
    const response = await fetch(link, { method: 'POST', ...init })
    return [response.status, /<h1>(.*)<\/h1>/.exec(await response.text())?.[1]]
  }
  return { server, receiver, signUp, stored, states, linksIn, press }
}

test('who confirms is on the list, once; following links changes nothing; who leaves is gone', async t => {
  const { server, receiver, signUp, stored, states, linksIn, press } = await stage(t)
  const { status, json } = await signUp(ada)
  assert.equal(status, 200)
  const message = 'Please confirm the mail that we have sent you.'
  assert.deepEqual(json, { success: true, message, alreadyExisted: false, automationTriggered: false })
  await until(() => server.mails.length === 1)
  const asking = await linksIn(server.mails[0]!)
  assert.ok(asking.confirm && asking.unsubscribe)
  assert.equal(asking.all.length, 2)

  // Once its mail is settled, only links could change anything.
  await until(() => JSON.stringify(stored()).includes('"delivered"'))
  const before = stored()
  for (const link of asking.all) {
    for (const method of ['GET', 'HEAD', 'GET']) assert.equal((await fetch(link, { method })).status, 200)
  }
  assert.deepEqual(stored(), before, 'what a scanner does')
  assert.deepEqual(states(), [['unconfirmed', ada.email]])
  assert.equal(receiver.received.length, 0)

  const presses = await Promise.all(Array.from({ length: 5 }, () => press(asking.confirm)))
  assert.deepEqual(
    presses.map(([, heading]) => heading).toSorted(),
    [pageSentences['confirm.done'], ...Array<string>(4).fill(pageSentences['confirm.doneBefore'])].toSorted(),
  )
  assert.deepEqual(states(), [['listed', ada.email]])
  await until(() => server.mails.length === 2 && receiver.received.length === 1)
  assert.equal((await signUp(ada)).json.alreadyExisted, true)

  const welcome = await linksIn(server.mails[1]!)
  assert.deepEqual(welcome.all, [asking.unsubscribe], 'one link to leave, in every mail')
  const oneClick = { body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) }
  const left = [200, pageSentences['unsubscribe.done']]
  assert.deepEqual(await press(welcome.unsubscribe, oneClick), left)
  assert.deepEqual(stored(), [[], []])
  assert.deepEqual(await press(welcome.unsubscribe, oneClick), left)
  assert.deepEqual(await press(asking.confirm), [410, pageSentences['confirm.deleted']])

  // Old links do nothing to whoever signs up anew.
  assert.equal((await signUp(ada)).json.alreadyExisted, false)
  await press(asking.confirm)
  await press(asking.unsubscribe)
  assert.deepEqual(states(), [['unconfirmed', ada.email]])
  await until(() => server.mails.length === 3)
  assert.equal(receiver.received.length, 1)
})
