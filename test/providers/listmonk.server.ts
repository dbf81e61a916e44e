import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'
import type { TestContext } from 'node:test'
import { endedWithUs } from '../harness/ended-with-us.ts'
import { freePort } from '../harness/port.ts'
import { startPostgres } from '../harness/postgres.ts'
import { withPostgresDatabase } from '../harness/postgres-database.ts'
import { until } from '../harness/program.ts'

/** The program itself, as its project releases it: one file with all that it needs. No registry has it. */
export const listmonkVersion: string | undefined = (() => {
  try {
    return execFileSync('listmonk', ['--version'], { encoding: 'utf8' }).trim()
  } catch {
    return undefined
  }
})()

export const noListmonk = 'no listmonk is on the PATH; its project releases one file for each system'

export interface Listmonk {
  readonly url: string
  /** Asks as its owner, who may do everything. Resolves with `data`, rejects unless the answer is 200. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  owner(method: string, path: string, body?: unknown): Promise<any>
  readonly ownerUser: { readonly name: string; readonly token: string }
  /** Makes an API user who may manage these lists and no others, and resolves with its token. */
  user(name: string, lists: readonly number[], permissions?: readonly string[]): Promise<string>
  /** Changes settings by their keys in the database, and starts it again. */
  set(settings: Readonly<Record<string, unknown>>): Promise<void>
  /** Ends like a crash. */
  stop(): Promise<void>
  start(): Promise<void>
  /** Recipient and subject of every mail so far. */
  readonly mails: readonly { readonly to: string; readonly subject: string }[]
}

/** As little as our provider needs. */
export const PERMISSIONS = ['subscribers:get', 'subscribers:manage', 'tx:send']

/** A listmonk of this test's own, on a PostgreSQL of its own. Its mails go nowhere. */
export async function startListmonk(t: Pick<TestContext, 'after'>): Promise<Listmonk> {
  const mails: { to: string; subject: string }[] = []
  const smtp = await sink(t, mails)
  const postgres = await startPostgres()
  let child: ChildProcess | undefined
  const own = endedWithUs('listmonk', () => child?.kill('SIGKILL'))
  async function stop() {
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill('SIGKILL')
    await exited
  }
  t.after(async () => {
    await stop()
    own.remove()
    await postgres.remove()
  })
  const database = await postgres.database()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const env = {
    PATH: process.env.PATH,
    LISTMONK_app__address: `127.0.0.1:${port}`,
    LISTMONK_db__host: '127.0.0.1',
    LISTMONK_db__port: String(postgres.port),
    LISTMONK_db__user: 'owner',
    LISTMONK_db__password: '-',
    LISTMONK_db__database: new URL(database).pathname.slice(1),
    LISTMONK_db__ssl_mode: 'disable',
    LISTMONK_ADMIN_USER: 'owner',
    LISTMONK_ADMIN_PASSWORD: 'owner-of-the-test',
    LISTMONK_ADMIN_API_USER: 'owner-api',
  }
  const token = await installed(env)
  const authorization = `token owner-api:${token}`

  async function start() {
    const started = spawn('listmonk', ['--config='], { env, cwd: own.folder, stdio: 'ignore' })
    child = started
    const health = () => fetch(`${url}/health`).then(({ ok }) => ok)
    await until(() => {
      if (started.exitCode !== null) throw new Error(`listmonk ended with ${started.exitCode}`)
      return health().catch(() => false)
    })
  }

  async function owner(method: string, path: string, body?: unknown) {
    const reply = await fetch(`${url}/api${path}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await reply.text()
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`)
    return JSON.parse(text).data
  }

  async function set(settings: Readonly<Record<string, unknown>>) {
    await stop()
    await withPostgresDatabase(database, async client => {
      for (const [key, value] of Object.entries(settings)) {
        const { rowCount } = await client.query('update settings set value = $2 where key = $1', [
          key,
          JSON.stringify(value),
        ])
        if (rowCount !== 1) throw new Error(`listmonk has no setting ${key}`)
      }
    })
    await start()
  }

  await set({
    'app.root_url': url,
    'app.check_updates': false,
    smtp: [
      {
        uuid: '01981d4f-3c00-7c4e-9d0a-000000000001',
        name: 'email-sink',
        enabled: true,
        host: '127.0.0.1',
        port: smtp,
        auth_protocol: 'none',
        username: '',
        password: '',
        hello_hostname: '',
        max_conns: 2,
        idle_timeout: '15s',
        wait_timeout: '5s',
        max_msg_retries: 2,
        tls_type: 'none',
        tls_skip_verify: false,
        email_headers: [],
      },
    ],
  })

  return {
    url,
    owner,
    ownerUser: { name: 'owner-api', token },
    async user(name, lists, permissions = PERMISSIONS) {
      const role = await owner('POST', '/roles/users', { name: `role of ${name}`, permissions })
      const each = lists.map(id => ({ id, permissions: ['list:get', 'list:manage'] }))
      const listRole = await owner('POST', '/roles/lists', { name: `lists of ${name}`, lists: each })
      const made = await owner('POST', '/users', {
        username: name,
        name,
        type: 'api',
        status: 'enabled',
        user_role_id: role.id,
        list_role_id: listRole.id,
      })
      return made.password
    },
    set,
    stop,
    start,
    mails,
  }
}

/** Lays the tables out; resolves with the token of the owner's API user. */
async function installed(env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn('listmonk', ['--config=', '--install', '--yes'], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said += text
  })
  await once(child, 'close')
  const [, token] = /LISTMONK_ADMIN_API_TOKEN="(.+)"/.exec(said) ?? []
  if (token === undefined) throw new Error(`listmonk was not installed:\n${said}`)
  return token
}

/** An SMTP server (RFC 5321 §4.1.1) that takes every mail; resolves with its port. */
async function sink(t: Pick<TestContext, 'after'>, mails: { to: string; subject: string }[]): Promise<number> {
  const server = createServer(socket => {
    let to = ''
    let mail: string[] | undefined
    socket.on('error', () => {})
    socket.write('220 sink\r\n')
    createInterface(socket).on('line', line => {
      if (mail !== undefined) {
        if (line !== '.') return void mail.push(line)
        const subject = mail.find(each => each.startsWith('Subject: ')) ?? ''
        mails.push({ to, subject: subject.slice('Subject: '.length) })
        mail = undefined
      }
      if (line === 'DATA') mail = []
      to = /^RCPT TO:<(.+)>/i.exec(line)?.[1] ?? to
      socket.write(line === 'DATA' ? '354 go on\r\n' : line === 'QUIT' ? '221 bye\r\n' : '250 ok\r\n')
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as { port: number }).port
}
