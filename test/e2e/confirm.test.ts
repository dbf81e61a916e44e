/** `CONFIRM=mail`, from a signup to the list and out of it again, with a mail server and a mail scanner. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import PostalMime from 'postal-mime'
import { pageSentences } from '../../src/messages/sentences.ts'
import { clientOf } from '../harness/client.ts'
import { withDatabase } from '../harness/database.ts'
import { webhookSecret } from '../harness/instances.ts'
import { startMailServer } from '../harness/mail-server.ts'
import { until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { startService } from '../harness/service.ts'

const BASE_URL = 'https://waitlist.acme.example'
const ada = { name: 'Ada', email: 'Ada@example.com' }

/** The answer to a press of a page's button. */
async function press(link: string, init: RequestInit = {}) {
  const response = await fetch(link, { method: 'POST', ...init })
  return [response.status, /<h1>(.*)<\/h1>/.exec(await response.text())?.[1]]
}

test('a signup joins once, when its link is confirmed; following links changes nothing; leaving deletes it', async t => {
  const server = await startMailServer(t)
  const receiver = await startReceiver(t, () => ({ status: 204 }))
  const service = await startService(t, {
    ...{ CONFIRM: 'mail', BASE_URL, TRUST_PROXY: '1', SERVICE_NAME: 'Acme', MAIL_RATE: '6000' },
    ...{ SMTP_URL: `smtp://${server.host}:${server.port}`, MAIL_FROM: 'hello@acme.example' },
    ...{ WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret },
  })
  const { signUp } = await clientOf({ baseUrl: service.origin })
  const rows = (query: string) => withDatabase(service.databasePath, database => database.prepare(query).all())
  const stored = () => [rows('select * from contact order by number'), rows('select * from delivery order by number')]
  const states = () => rows('select state, email from contact').map(({ state, email }) => [state, email])
  /** The links in the text, the HTML and the headers of a mail. */
  async function linksIn(mail: number) {
    await until(() => server.mails.length > mail)
    const { text = '', html = '', headers } = await PostalMime.parse(server.mails[mail]!.source)
    const fields = headers.filter(({ key }) => key.startsWith('list-')).map(({ value }) => value)
    const found = [text, html, ...fields].flatMap(part => part.match(/https:[^\s"<>]+/g) ?? [])
    const all = [...new Set(found)].map(link => link.replace(BASE_URL, service.origin))
    const to = (path: string) => all.find(link => link.startsWith(service.origin + path)) ?? ''
    return { all, confirm: to('/confirm'), unsubscribe: to('/unsubscribe') }
  }

  assert.deepEqual((await signUp(ada)).json, {
    success: true,
    message: 'Please confirm the mail that we have sent you.',
    alreadyExisted: false,
    automationTriggered: false,
  })
  const first = await linksIn(0)
  assert.ok(first.confirm && first.unsubscribe)
  assert.equal(first.all.length, 2)

  // Once its mail is settled, only links could change anything.
  await until(() => JSON.stringify(stored()).includes('"delivered"'))
  const before = stored()
  for (const link of first.all) {
    for (const method of ['GET', 'HEAD', 'GET']) assert.equal((await fetch(link, { method })).status, 200)
  }
  assert.deepEqual(stored(), before, 'a scanner follows every link')
  assert.deepEqual(states(), [['unconfirmed', ada.email]])
  assert.equal(receiver.received.length, 0)

  const presses = await Promise.all(Array.from({ length: 5 }, () => press(first.confirm)))
  assert.deepEqual(
    presses.map(([, heading]) => heading).toSorted(),
    [pageSentences['confirm.done'], ...Array<string>(4).fill(pageSentences['confirm.doneBefore'])].toSorted(),
  )
  assert.deepEqual(states(), [['listed', ada.email]])
  const welcome = await linksIn(1)
  await until(() => receiver.received.length === 1)
  assert.equal((await signUp(ada)).json.alreadyExisted, true)

  assert.deepEqual(welcome.all, [first.unsubscribe], 'every mail has the same link to leave')
  const oneClick = { body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) }
  const left = [200, pageSentences['unsubscribe.done']]
  assert.deepEqual(await press(welcome.unsubscribe, oneClick), left)
  assert.deepEqual(stored(), [[], []])
  assert.deepEqual(await press(welcome.unsubscribe, oneClick), left)
  assert.deepEqual(await press(first.confirm), [410, pageSentences['confirm.deleted']])

  // Old links do nothing to a newer signup.
  assert.equal((await signUp(ada)).json.alreadyExisted, false)
  await press(first.confirm)
  await press(first.unsubscribe)
  assert.deepEqual(states(), [['unconfirmed', ada.email]])
  await linksIn(2)
  assert.equal(receiver.received.length, 1)
})
