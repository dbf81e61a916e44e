import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { endedWithUs } from './ended-with-us.ts'
import { freePort } from './port.ts'

export const noPgBouncer = 'pgbouncer is not installed; .ci/run installs it'

/** The program of this machine; npm has none. */
export const pgBouncerProgram: string | undefined = ['pgbouncer', '/usr/sbin/pgbouncer'].find(name => {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
})

export interface PgBouncer {
  /** The same URL, through here. */
  through(url: string): string
  stop(): Promise<void>
}

/** Stands before a server of this process's own, in transaction mode, with `connections` to each database. */
export async function startPgBouncer(target: number, connections: number): Promise<PgBouncer> {
  let started: ChildProcess | undefined
  const { folder, remove } = endedWithUs('pgbouncer', () => started?.kill('SIGKILL'))
  const port = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  writeFileSync(join(folder, 'users.txt'), '"owner" ""\n')
  writeFileSync(
    file,
    `
[databases]
* = host=127.0.0.1 port=${target} user=owner
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = ${connections}
max_client_conn = 500
`,
  )
  chmodSync(folder, 0o755)
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = spawn(pgBouncerProgram!, [...user, file], { stdio: ['ignore', 'ignore', 'pipe'] })
  started = child
  const exited = once(child, 'exit')
  let log = ''
  await new Promise<void>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', text => {
      log = (log + text).slice(-10_000)
      if (/process up/.test(log)) resolve()
    })
    child.once('exit', () => {
      remove()
      reject(new Error(`PgBouncer ended:\n${log}`))
    })
  })
  return {
    through(url) {
      const through = new URL(url)
      through.port = String(port)
      return through.href
    },
    async stop() {
      child.kill('SIGKILL')
      await exited
      remove()
    },
  }
}
