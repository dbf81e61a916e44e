import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { endedWithUs } from './ended-with-us.ts'
import { freePort } from './port.ts'
import { until } from './program.ts'
import { fixture } from './tls.ts'

export const noExim = 'exim4 is not installed; .ci/run installs it'

/** The program of this machine; npm has none. */
export const eximProgram: string | undefined = ['exim4', '/usr/sbin/exim4'].find(name => {
  try {
    execFileSync(name, ['-bV'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

export interface Exim {
  readonly port: number
  /** Every mail that it has delivered, as it stands in the mailbox, in no order. */
  mails(): readonly string[]
}

export const login = { user: 'postmaster', password: 'correct horse' }

/**
 * Debian's mail server on a free port, with a configuration and a mailbox of its own, until the test ends. It knows the
 * domain example.com, takes mail for it from anybody who has logged in, and relays nothing. Nobody logs in unencrypted.
 */
export async function startExim(t: Pick<TestContext, 'after'>): Promise<Exim> {
  let started: ChildProcess | undefined
  // With the processes that serve its connections, which would log their end in a folder that is gone.
  const kill = () => {
    if (started?.pid !== undefined && started.exitCode === null) process.kill(-started.pid, 'SIGKILL')
  }
  const { folder, remove } = endedWithUs('exim', kill)
  t.after(async () => {
    const exited = started?.exitCode === null ? once(started, 'exit') : undefined
    kill()
    await exited
    remove()
  })
  const port = await freePort()
  // It delivers nothing as root.
  const isRoot = process.getuid?.() === 0
  const id = (flag: string) => Number(execFileSync('id', [flag, ...(isRoot ? ['Debian-exim'] : [])]))
  const [uid, gid] = [id('-u'), id('-g')]
  copyFileSync(fixture('first.crt'), join(folder, 'cert.pem'))
  copyFileSync(fixture('first.key'), join(folder, 'key.pem'))
  writeFileSync(
    join(folder, 'exim.conf'),
    `
primary_hostname = mail.example.com
exim_user = ${uid}
exim_group = ${gid}
deliver_drop_privilege = true
spool_directory = ${folder}/spool
log_file_path = ${folder}/%slog
pid_file_path = ${folder}/exim.pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = ${port}
tls_advertise_hosts = *
tls_certificate = ${folder}/cert.pem
tls_privatekey = ${folder}/key.pem
auth_advertise_hosts = \${if eq{$tls_in_cipher}{}{}{*}}
acl_smtp_rcpt = recipient
acl_smtp_data = mail
keep_environment =
rfc1413_query_timeout = 0s

begin acl
recipient:
  deny    !authenticated = *
          message = relay not permitted
  deny    domains = !example.com
          message = relay not permitted
  deny    local_parts = nobody
          message = Unknown user $local_part@$domain
  accept
mail:
  deny    condition = \${if match{$h_subject:}{refused}}
          message = This mail for $recipients is refused
  accept

begin routers
everybody:
  driver = accept
  transport = mailbox

begin transports
mailbox:
  driver = appendfile
  directory = ${folder}/mailbox
  maildir_format
  user = ${uid}
  group = ${gid}

begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if and{{eq{$auth2}{${login.user}}}{eq{$auth3}{${login.password}}}}}
  server_set_id = $auth2
`,
  )
  for (const name of ['spool', 'mailbox', 'mailbox/new', 'mailbox/cur', 'mailbox/tmp']) mkdirSync(join(folder, name))
  if (isRoot)
    for (const name of ['', ...readdirSync(folder, { recursive: true })])
      chownSync(join(folder, String(name)), uid, gid)
  chmodSync(folder, 0o700)

  const child = spawn(eximProgram!, ['-C', join(folder, 'exim.conf'), '-bdf'], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
    ...(isRoot ? { uid, gid } : {}),
  })
  started = child
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said = (said + text).slice(-10_000)
  })
  await until(() => {
    if (child.exitCode !== null) throw new Error(`exim ended with ${child.exitCode}: ${said}`)
    return existsSync(join(folder, 'exim.pid'))
  })
  return {
    port,
    mails: () =>
      readdirSync(join(folder, 'mailbox/new')).map(name => readFileSync(join(folder, 'mailbox/new', name), 'utf8')),
  }
}
