import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import PostalMime from 'postal-mime'
import { eventId } from '../../src/signup/contact.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { type MailServerOptions, type ReceivedMail, reset, say, startMailServer } from '../harness/mail-server.ts'
import { runCommand, runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'

const login = { user: 'postmaster', password: 'correct horse' }
const email = 'zebulon@quixote.example'

/** A folder, a mail server, and a service and commands that send mails there. */
async function stage(t: TestContext, options: MailServerOptions = {}) {
  const folder = temporaryFolder(t)
  const server = await startMailServer(t, { login, ...options })
  const env = {
    PORT: '0',
    SHUTDOWN_DELAY: '0',
    DATABASE_URL: 'sqlite:waitlist.db',
    SMTP_URL: `smtp://${login.user}:${encodeURIComponent(login.password)}@${server.host}:${server.port}`,
    MAIL_FROM: 'Acme <hello@acme.example>',
    SERVICE_NAME: 'Acme',
    MAIL_RATE: '6000',
  }
  return {
    ...{ folder, server, env, path: join(folder, 'waitlist.db') },
    start: (more: Record<string, string> = {}) => runProgram(t, { ...env, ...more }, { cwd: folder }),
    run: (args: readonly string[], more: Record<string, string> = {}) =>
      runCommand(t, folder, [...args], { ...env, ...more }),
  }
}

const messageIdOf = ({ source }: ReceivedMail): string => /^Message-ID:\s+(\S+)/m.exec(source.toString())![1]!

/** The states and reasons of all deliveries. */
const deliveriesIn = (path: string) =>
  withDatabase(path, database =>
    database
      .prepare('select state, why from delivery order by number')
      .all()
      .map(row => ({ ...row })),
  )

test('a signup is sent one welcome, a second signup none, and the log knows no name, address or password', async t => {
  const { server, start, path } = await stage(t)
  const program = await start()
  assert.equal((await visit(program, email))?.status, 200)
  await until(() => deliveriesIn(path).every(({ state }) => state === 'delivered'))
  assert.equal((await visit(program, email.toUpperCase()))?.status, 200)
  assert.equal(await program.end('SIGTERM'), 0)
  const [one, ...others] = server.mails
  assert.deepEqual([others, one!.to, one!.user], [[], [email], login.user])
  assert.ok(messageIdOf(one!).startsWith(`<${eventId(contactsIn(path)[0]!, 'joined')}_`))
  assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote|correct/i)
})

test('cut off after the end of a mail, it is sent again with the same Message-ID', async t => {
  const { server, start, path } = await stage(t, {
    deed: (moment, count) => (moment === 'the end' && count === 1 ? reset : null),
  })
  const program = await start()
  assert.equal((await visit(program, email))?.status, 200)
  await until(() => deliveriesIn(path)[0]?.state === 'delivered')
  assert.equal(await program.end('SIGTERM'), 0)
  const ids = server.mails.map(messageIdOf)
  assert.deepEqual([ids.length, new Set(ids).size], [2, 1])
})

test('a wrong template stops the start with a sentence', async t => {
  const { folder, run } = await stage(t)
  mkdirSync(join(folder, 'mails'))
  writeFileSync(join(folder, 'mails', 'welcome.txt'), 'Subject: Hi {nome}\n\n{unsubscribe}')
  const { code, stdout, stderr } = await run(['serve'], { MAIL_TEMPLATES: 'mails' })
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, /MAIL_TEMPLATES: mails\/welcome\.txt has \{nome\}, but the placeholders are \{name\}/)
})

test('the owner is mailed how many joined, and what is wrong; nobody else is mailed', async t => {
  const { server, start } = await stage(t)
  const receiver = await startReceiver(t, () => ({ status: 401 }))
  const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
  const OWNER_MAIL = 'Aldonza Lorenzo <Aldonza.Lorenzo@acme.example>'
  const program = await start({ OWNER_MAIL, MAILS: 'none', WEBHOOK_URL: receiver.url, WEBHOOK_SECRET })
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

test('check greets the server and logs in, and sends nothing unless it is asked to', async t => {
  const answers = [null, null, say('550 5.1.1 no such mailbox')]
  const { env, run, server } = await stage(t, {
    deed: (moment, count) => (moment === 'RCPT' ? answers[count - 1]! : null),
  })
  const OWNER_MAIL = 'you@example.com'
  const { stdout } = await run(['check'], { OWNER_MAIL })
  assert.match(stdout, /^ok {6}mail: the server accepts .*\nok {6}owner-mail: not tried; --send-test /m)
  const wrong = await run(['check'], { SMTP_URL: env.SMTP_URL.replace('correct', 'wrong') })
  assert.match(wrong.stdout, /^wrong {3}mail: login: 535/m)
  assert.equal(wrong.code, 1)
  assert.doesNotMatch(wrong.stdout + wrong.stderr, /wrong%20|wrong horse/)
  assert.equal(server.mails.length, 0)
  const tested = await run(['check', '--send-test'], { OWNER_MAIL })
  assert.match(tested.stdout, /^ok {6}owner-mail: it took a test message$/m)
  const good = await run(['check', '--mail', 'me@example.com'])
  assert.match(good.stdout, /^ok {6}mail to me@example\.com: the server took it: 250 OK: message queued$/m)
  const bad = await run(['check', '--mail', 'me@example.com'])
  assert.match(bad.stdout, /^wrong {3}mail to me@example\.com: RCPT TO: 550 5\.1\.1 no such mailbox$/m)
  assert.deepEqual(
    server.mails.map(({ to }) => to[0]),
    ['you@example.com', 'me@example.com'],
  )
})
