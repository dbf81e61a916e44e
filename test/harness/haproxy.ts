import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Balancer, CHECK_EVERY, CHECK_TIMEOUT } from './balancer.ts'
import { endedWithUs } from './ended-with-us.ts'
import { freePort } from './port.ts'

/** Null where it is installed. npm has none. */
export const noHaproxy: string | null = isInstalled() ? null : 'haproxy is not installed; .ci/run installs it'

function isInstalled(): boolean {
  try {
    execFileSync('haproxy', ['-v'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const PLACES = 8

const RUNNING = '2'
const MAINTENANCE = 0b1

/** As docs/instances.md advises it, with places that instances are put into while it runs. */
const configuration = (port: number, control: string) => `
global
  stats socket ${control} level admin
defaults
  mode http
  option forwardfor
  timeout connect 2s
  timeout client 60s
  timeout server 20s
  timeout check ${CHECK_TIMEOUT}ms
  maxconn 4000
frontend visitors
  bind 127.0.0.1:${port}
  default_backend instances
backend instances
  balance roundrobin
  option httpchk GET /api/health
  http-check send hdr Host waitlist.example.com
  http-check expect status 200
  option redispatch 1
  retries 3
  retry-on conn-failure
  default-server check inter ${CHECK_EVERY}ms fall 1 rise 1
  server-template place 1-${PLACES} 127.0.0.1:1 disabled
`

/** The same with the field's own balancer. */
export async function startHaproxy(): Promise<Balancer> {
  let started: ChildProcess | undefined
  const own = endedWithUs('haproxy', () => started?.kill('SIGKILL'))
  const port = await freePort()
  const control = join(own.folder, 'control')
  const file = join(own.folder, 'haproxy.cfg')
  writeFileSync(file, configuration(port, control))
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] })
  started = child
  let said = ''
  child.stderr.setEncoding('utf8').on('data', text => {
    said += text
  })
  const ended = once(child, 'close')
  const url = `http://127.0.0.1:${port}`
  while (!(await accepts(port))) {
    if (child.exitCode !== null) {
      own.remove()
      throw new Error(`HAProxy ended:\n${said}`)
    }
    await wait(20)
  }

  const places = new Array<string | undefined>(PLACES).fill(undefined)
  const place = (index: number) => `instances/place${index + 1}`
  /** Those that run and are not in maintenance (https://docs.haproxy.org/2.6/management.html#9.3, `show servers state`). */
  async function up(): Promise<string[]> {
    const [, names, ...lines] = (await ask(control, 'show servers state instances')).trim().split('\n')
    const at = (name: string) => names!.split(' ').indexOf(name) - 1
    return lines
      .map(line => line.split(' '))
      .filter(
        fields => fields[at('srv_op_state')] === RUNNING && !(Number(fields[at('srv_admin_state')]) & MAINTENANCE),
      )
      .map(fields => `http://127.0.0.1:${fields[at('srv_port')]}`)
  }

  return {
    url,
    async add(instance) {
      const free = places.indexOf(undefined)
      if (free === -1) throw new Error(`there are ${PLACES} places`)
      places[free] = instance
      const { hostname, port } = new URL(instance)
      await ask(control, `set server ${place(free)} addr ${hostname} port ${port}`)
      await ask(control, `set server ${place(free)} state ready`)
      // Until the first check says otherwise.
      await ask(control, `set server ${place(free)} health down`)
      while (!(await up()).includes(instance)) await wait(20)
    },
    async remove(instance) {
      const index = places.indexOf(instance)
      if (index === -1) return
      await ask(control, `set server ${place(index)} state maint`)
      places[index] = undefined
    },
    inRotation: up,
    async close() {
      child.kill('SIGKILL')
      await ended
      own.remove()
    },
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

/** One command to the runtime API, and all that it says. */
async function ask(control: string, command: string): Promise<string> {
  const socket = connect(control)
  socket.write(`${command}\n`)
  let said = ''
  for await (const chunk of socket.setEncoding('utf8')) said += chunk
  return said
}
