import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import PostalMime from 'postal-mime'
import { eventId } from '../../src/signup/contact.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { visit } from '../harness/load.ts'
import { type MailServerOptions, startMailServer } from '../harness/mail-server.ts'
import { runCommand, runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'

const login = { user: 'postmaster', password: 'correct horse' }
const email = 'zebulon@quixote.example'

/** A folder, a mail server, and a service and commands that send mails there. */
async function stage(t: TestContext, options: MailServerOptions = {}) {
  const cwd = temporaryFolder(t)
  const server = await startMailServer(t, { login, ...options })
  const env = {
    ...{ PORT: '0', SHUTDOWN_DELAY: '0', DATABASE_URL: 'sqlite:waitlist.db' },
    SMTP_URL: `smtp://${login.user}:${encodeURIComponent(login.password)}@${server.host}:${server.port}`,
    ...{ MAIL_FROM: 'Acme <hello@acme.example>', SERVICE_NAME: 'Acme', MAIL_RATE: '6000' },
  }
  return {
    ...{ server, env, path: join(cwd, 'waitlist.db') },
    start: (more: Record<string, string> = {}) => runProgram(t, { ...env, ...more }, { cwd }),
    check: (args: readonly string[], more: Record<string, string> = {}) =>
      runCommand(t, cwd, ['check', ...args], { ...env, ...more }),
  }
}

test('a signup is sent one welcome, a second signup none, and the log has no name, address or password', async t => {
  const { server, start, path } = await stage(t)
  const program = await start()
  assert.equal((await visit(program, email))?.status, 200)
  await until(
    () => withDatabase(path, db => db.prepare("select 1 from delivery where state = 'delivered'").get()) !== undefined,
  )
  assert.equal((await visit(program, email.toUpperCase()))?.status, 200)
  assert.equal(await program.end('SIGTERM'), 0)
  const [mail, ...others] = server.mails
  assert.deepEqual([others, mail!.to, mail!.user], [[], [email], login.user])
  const { messageId } = await PostalMime.parse(mail!.source)
  assert.ok(messageId!.startsWith(`<${eventId(contactsIn(path)[0]!, 'joined')}_`))
  assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote|correct/i)
})

test('the owner, and nobody else, is mailed how many joined and what is wrong', async t => {
  const { server, start } = await stage(t)
  const receiver = await startReceiver(t, () => ({ status: 401 }))
  const program = await start({
    OWNER_MAIL: 'Aldonza Lorenzo <Aldonza.Lorenzo@acme.example>',
    ...{ MAILS: 'none', WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: webhookSecret },
  })
  assert.equal((await visit(program, email))?.status, 200)
  await until(() => server.mails.length >= 2)
  assert.equal(await program.end('SIGTERM'), 0)
  const subjects = await Promise.all(server.mails.map(async ({ source }) => (await PostalMime.parse(source)).subject!))
  const [joined, broke] = subjects.sort()
  assert.equal(joined, 'Acme: 1 person joined the waitlist, 1 in all')
  assert.match(broke!, /^Acme: The webhook refuses our settings: .* answered with 401$/)
  assert.deepEqual(new Set(server.mails.flatMap(({ to }) => to)), new Set(['Aldonza.Lorenzo@acme.example']))
  assert.doesNotMatch(program.stdout() + program.stderr(), /aldonza|lorenzo|zebulon|quixote|correct/i)
})

test('check logs in to the mail server, and sends nothing unless it is asked to', async t => {
  const answers = [null, null, '550 5.1.1 no such mailbox']
  const { env, check, server } = await stage(t, {
    deed: (moment, count) => (moment === 'RCPT' ? answers[count - 1]! : null),
  })
  const OWNER_MAIL = 'you@example.com'
  const { stdout } = await check([], { OWNER_MAIL })
  assert.match(stdout, /^ok {6}mail: the server accepts .*\nok {6}owner-mail: not tried; --send-test /m)
  const wrong = await check([], { SMTP_URL: env.SMTP_URL.replace('correct', 'wrong') })
  assert.match(wrong.stdout, /^wrong {3}mail: login: 535/m)
  assert.equal(wrong.code, 1)
  assert.doesNotMatch(wrong.stdout + wrong.stderr, /wrong%20|wrong horse/)
  assert.equal(server.mails.length, 0)

  const tested = await check(['--send-test'], { OWNER_MAIL })
  assert.match(tested.stdout, /^ok {6}owner-mail: it took a test message$/m)
  const good = await check(['--mail', 'me@example.com'])
  assert.match(good.stdout, /^ok {6}mail to me@example\.com: the server took it: 250 OK: message queued$/m)
  const bad = await check(['--mail', 'me@example.com'])
  assert.match(bad.stdout, /^wrong {3}mail to me@example\.com: RCPT TO: 550 5\.1\.1 no such mailbox$/m)
  assert.deepEqual(
    server.mails.map(({ to }) => to[0]),
    ['you@example.com', 'me@example.com'],
  )
})
