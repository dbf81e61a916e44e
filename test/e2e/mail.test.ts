import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import PostalMime from 'postal-mime'
import { eventId } from '../../src/signup/contact.ts'
import { contactsIn, withDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { visit } from '../harness/load.ts'
import { type MailServerOptions, reset, say, startMailServer } from '../harness/mail-server.ts'
import { logOf, type Program, runCommand, runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'

const login = { user: 'postmaster', password: 'correct horse' }
const email = 'zebulon@quixote.example'

/** A folder, a mail server, and the settings that send mails there. */
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
  return { folder, path: join(folder, 'waitlist.db'), server, env, start: () => runProgram(t, env, { cwd: folder }) }
}

const signUp = async (program: Program, address = email): Promise<void> =>
  assert.equal((await visit(program, address))?.status, 200)

/** The states and reasons of all deliveries. */
const deliveriesIn = (path: string) =>
  withDatabase(path, database =>
    database
      .prepare('select destination, state, why from delivery order by number')
      .all()
      .map(row => ({ ...row })),
  )

const run = (t: TestContext, env: Record<string, string>, cwd: string, ...args: string[]) =>
  runCommand(t, cwd, args, env)

describe('welcome mails', () => {
  test('a signup is sent one, a second signup none, and the log knows no name, address or password', async t => {
    const { server, start, path } = await stage(t)
    const program = await start()
    await signUp(program)
    await until(() => deliveriesIn(path).every(({ state }) => state === 'delivered'))
    await signUp(program, email.toUpperCase())
    assert.equal(await program.end('SIGTERM'), 0)
    const [one, ...others] = server.mails
    assert.deepEqual(others, [])
    assert.deepEqual([one!.to, one!.user], [[email], login.user])
    const [contact] = contactsIn(path)
    assert.ok(one!.source.includes(`Message-ID: <${eventId(contact!, 'joined')}@acme.example>\r\n`))
    assert.deepEqual(deliveriesIn(path), [{ destination: 'mail', state: 'delivered', why: null }])
    assert.equal(logOf(program).find(({ msg }) => msg === 'waitlist is ready')!.mail, `127.0.0.1:${server.port}`)
    assert.doesNotMatch(program.stdout() + program.stderr(), /zebulon|quixote|correct/i)
  })

  test('cut off after the end of a mail, it sends no second one, until the operator replays it', async t => {
    const { server, start, path, env, folder } = await stage(t, {
      deed: (moment, count) => (moment === 'the end' && count === 1 ? reset : null),
    })
    const program = await start()
    await signUp(program)
    await until(() => deliveriesIn(path)[0]!.why !== null)
    assert.equal(deliveriesIn(path)[0]!.state, 'abandoned')
    assert.equal(server.mails.length, 1)
    assert.equal((await run(t, env, folder, 'deliveries', 'replay', '1')).code, 0)
    await until(() => deliveriesIn(path)[0]!.state === 'delivered')
    assert.equal(await program.end('SIGTERM'), 0)
    const [first, second] = server.mails.map(({ source }) => /^Message-ID: .*$/m.exec(source.toString())![0])
    assert.equal(first, second)
  })

  test('a wrong file stops the start with a sentence', async t => {
    const { folder, env } = await stage(t)
    writeFileSync(join(folder, 'welcome.txt'), 'Hi {nome}')
    const { code, stdout, stderr } = await run(t, { ...env, MAIL_TEXT_FILE: 'welcome.txt' }, folder, 'serve')
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /MAIL_TEXT_FILE: welcome\.txt has \{nome\}, but the placeholders are \{name\}/)
  })
})

describe('mails to the owner', () => {
  const OWNER_MAIL = 'Aldonza Lorenzo <Aldonza.Lorenzo@acme.example>'

  test('how many joined, what is wrong, and that it is right again, and nobody else is mailed', async t => {
    const { server, env, folder } = await stage(t)
    let isWell = false
    const receiver = await startReceiver(t, () => ({ status: isWell ? 204 : 401 }))
    const program = await runProgram(
      t,
      {
        ...{ ...env, OWNER_MAIL, OWNER_MAIL_INTERVAL: '1s', MAIL_WELCOME: 'false' },
        ...{ WEBHOOK_URL: receiver.url, WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}` },
      },
      { cwd: folder },
    )
    const told = async () => {
      const subjects = await Promise.all(
        server.mails.map(async ({ source }) => (await PostalMime.parse(source)).subject!),
      )
      const joined = subjects.map(
        each => /^Acme: (\d) (?:person|people) joined the waitlist, \d in all$/.exec(each)?.[1],
      )
      return {
        people: joined.reduce((sum, each) => sum + Number(each ?? 0), 0),
        alerts: subjects.filter((_, i) => joined[i] === undefined),
      }
    }
    const isTold = async (people: number, alerts: number) => {
      const all = await told()
      return all.people === people && all.alerts.length === alerts
    }
    await signUp(program)
    await until(() => isTold(1, 1))
    await signUp(program, 'a@quixote.example')
    await signUp(program, 'b@quixote.example')
    await until(() => isTold(3, 1))
    isWell = true
    await until(() => isTold(3, 2))
    assert.equal(await program.end('SIGTERM'), 0)
    assert.deepEqual((await told()).alerts, [
      'Acme: The webhook refuses our settings: events are kept and delivered later',
      'Acme: The webhook answers again: the events that were kept are delivered now',
    ])
    assert.deepEqual(new Set(server.mails.flatMap(({ to }) => to)), new Set(['Aldonza.Lorenzo@acme.example']))
    assert.equal(logOf(program).find(({ msg }) => msg === 'waitlist is ready')!.channels, 'owner-mail')
    assert.doesNotMatch(program.stdout() + program.stderr(), /aldonza|lorenzo|zebulon|quixote|correct/i)
  })
})

describe('waitlist check', () => {
  test('it greets the server, logs in, and sends nothing', async t => {
    const { folder, env, server } = await stage(t)
    const { code, stdout } = await run(t, env, folder, 'check')
    assert.match(stdout, /^ok {6}mail: the server accepts the login$/m)
    assert.equal(code, 0)
    const wrong = { ...env, SMTP_URL: env.SMTP_URL.replace('correct', 'wrong') }
    const refused = await run(t, wrong, folder, 'check')
    assert.match(refused.stdout, /^wrong {3}mail: try the mail server: AUTH was answered with 535/m)
    assert.equal(refused.code, 1)
    assert.doesNotMatch(refused.stdout + refused.stderr, /wrong%20|wrong horse/)
    assert.equal(server.mails.length, 0)
  })

  test('with --send-test it sends one to the owner, and nothing to anybody otherwise', async t => {
    const { folder, env, server } = await stage(t)
    const owned = { ...env, OWNER_MAIL: 'you@example.com' }
    const untried = await run(t, owned, folder, 'check')
    assert.match(untried.stdout, /^ok {6}owner-mail: not tried; --send-test sends a test message$/m)
    assert.equal(server.mails.length, 0)
    const { code, stdout } = await run(t, owned, folder, 'check', '--send-test')
    assert.match(stdout, /^ok {6}mail: the server accepts the login\nok {6}owner-mail: it took a test message$/m)
    assert.equal(code, 0)
    assert.deepEqual(
      server.mails.map(({ to }) => to),
      [['you@example.com']],
    )
    assert.match(server.mails[0]!.source.toString(), /^Subject: Acme: waitlist check: this works\r$/m)
  })

  test('with --mail it sends one, and says what the server answered', async t => {
    const answers = [null, say('550 5.1.1 no such mailbox')]
    const { folder, env, server } = await stage(t, {
      deed: (moment, count) => (moment === 'RCPT' ? answers[count - 1]! : null),
    })
    const good = await run(t, env, folder, 'check', '--mail', 'you@example.com')
    assert.equal(good.stdout, 'ok      mail to you@example.com: the server took it: 250 OK: message queued\n')
    assert.equal(good.code, 0)
    assert.deepEqual(
      server.mails.map(({ to }) => to),
      [['you@example.com']],
    )
    const bad = await run(t, env, folder, 'check', '--mail', 'you@example.com')
    assert.match(bad.stdout, /^wrong {3}mail to you@example\.com: .* answered with 550 5\.1\.1 \(no such mailbox\)$/m)
    assert.equal(bad.code, 1)
  })

  test('with --mail, a wrong address, no mail server, or no confirmations where one is asked for is an error', async t => {
    const { folder, env, server } = await stage(t)
    const wrong = await run(t, env, folder, 'check', '--mail', 'a@b.c\r\nRCPT TO:<x@y.z>')
    assert.deepEqual([wrong.code, wrong.stdout], [2, ''])
    assert.match(wrong.stderr, /It must be an email address/)
    const { SMTP_URL, MAIL_FROM, ...off } = env
    const { code, stderr } = await run(t, off, folder, 'check', '--mail', 'you@example.com')
    assert.equal(code, 1)
    assert.match(stderr, /SMTP_URL is not set: no mail can be sent/)
    const asking = await run(t, env, folder, 'check', '--mail', 'you@example.com', '--letter', 'confirm')
    assert.equal(asking.code, 1)
    assert.match(asking.stderr, /CONFIRM=mail is not set: nobody is asked to confirm an address/)
    assert.equal(server.connections.all, 0)
  })
})
