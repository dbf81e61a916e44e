import assert from 'node:assert/strict'
import { createReadStream, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { webhookSecret } from '../harness/instances.ts'
import { load, visit } from '../harness/load.ts'
import { startReceiver } from '../harness/receiver.ts'
import type { Fixture } from './fixture.ts'

/**
 * What a process did to its files, answered its clients, and sent to others, in the order of the effects: a write or an answer
 * when it began, a sync when it had ended. Positions count the lines of the trace.
 */
export type Call =
  | { readonly is: 'write'; readonly file: string; readonly at: number; readonly bytes: Buffer; readonly ended: number }
  | { readonly is: 'truncate'; readonly file: string; readonly size: number; readonly ended: number }
  /** Of a file, or of the names in a folder. What had ended when it began is on the disk. */
  | { readonly is: 'sync'; readonly file: string; readonly began: number }
  | { readonly is: 'create'; readonly file: string; readonly ended: number }
  | { readonly is: 'unlink'; readonly file: string; readonly ended: number }
  /** With the address that it is about, where the request had one. */
  | { readonly is: 'answer'; readonly status: number; readonly email: string | undefined }
  /** An attempt: a request of our own to this path, about this address. */
  | { readonly is: 'send'; readonly path: string; readonly email: string }

const WATCHED = 'openat,read,pwrite64,write,writev,ftruncate,fsync,fdatasync,unlink'

/** Microseconds that each sync takes longer, so that more happens during one. */
const DELAY = 3_000

/** Runs a program so that `readTrace` can read this file when it has ended. */
const tracedTo = (file: string): readonly string[] => [
  ...['strace', '-D', '-f', '-qq', '-yy', '--seccomp-bpf', '-xx', '-s', '1000000', '-e', 'signal=none'],
  ...['-e', `trace=${WATCHED}`, '-e', `inject=fdatasync:delay_enter=${DELAY}`, '-o', file],
]

/** A call, whole or until another thread's came between, and how the latter ended: with `?` where its process was killed. */
const CALL = /^(\d+) +(\w+)\((.*?)(?:\)? += (-?\d+|\?)[^"]*| <unfinished \.\.\.>)$/
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>.*\) += (-?\d+|\?)/
const DESCRIPTOR = /^\d+<(.*?)>(?:, |$)/
const TEXT = /"((?:\\x[\da-f]{2})*)"/g

const emailIn = (text: string): string | undefined => /"email":"([^"]+)"/.exec(text)?.[1]?.toLowerCase()

const decoded = (hex: string): Buffer => Buffer.from(hex.replaceAll('\\x', ''), 'hex')

/** Calls that failed are left out, and files whose name does not begin with `files`. */
async function readTrace(path: string, files: string): Promise<readonly Call[]> {
  const open = new Map<string, { readonly began: number; readonly name: string; readonly args: string }>()
  /** What came in on each connection since the last answer. */
  const asked = new Map<string, string>()
  /** What went out on each connection that began with a request, until the address was there. */
  const sending = new Map<string, { readonly began: number; readonly text: string }>()
  const found: { readonly position: number; readonly call: Call }[] = []
  let position = 0
  for await (const line of createInterface(createReadStream(path))) {
    position++
    const resumed = RESUMED.exec(line)
    if (resumed !== null) {
      const begun = open.get(resumed[1]!)
      if (begun !== undefined && begun.name === resumed[2])
        note(begun.name, begun.args, Number(resumed[3]), begun.began, position)
      open.delete(resumed[1]!)
      continue
    }
    const [, thread, name, args, result] = CALL.exec(line) ?? []
    if (thread === undefined) continue
    if (result === undefined) open.set(thread, { began: position, name: name!, args: args! })
    else note(name!, args!, Number(result), position, position)
  }
  // Taken as done: if it was not, the next process writes there again.
  for (const { began, name, args } of open.values()) note(name, args, Number.NaN, began, ++position)
  return found.sort((a, b) => a.position - b.position).map(({ call }) => call)

  function noteSending(target: string, more: string, began: number): void {
    const first = sending.get(target) ?? { began, text: '' }
    const text = first.text + more
    sending.set(target, { began: first.began, text })
    const email = emailIn(text)
    if (email === undefined) return
    sending.delete(target)
    found.push({ position: first.began, call: { is: 'send', path: text.split(' ')[1]!, email } })
  }

  function note(name: string, args: string, result: number, began: number, ended: number): void {
    if (result < 0) return
    const target = DESCRIPTOR.exec(args)?.[1] ?? ''
    const add = (call: Call, position = began) => void found.push({ position, call })
    if (target.startsWith('TCP')) {
      const text = [...args.matchAll(TEXT)].map(([, hex]) => decoded(hex!).toString('latin1')).join('')
      const before = asked.get(target) ?? ''
      if (name === 'read') return void asked.set(target, before + text)
      if (text.startsWith('POST ') || sending.has(target)) return noteSending(target, text, began)
      const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
      // The rest of an answer whose beginning was noted.
      if (status === undefined) return
      asked.delete(target)
      return add({ is: 'answer', status: Number(status), email: emailIn(before) })
    }
    const named = name === 'openat' || name === 'unlink'
    const file = decoded(named ? (TEXT[Symbol.matchAll](args).next().value?.[1] ?? '') : target).toString()
    if (!file.startsWith(files)) return
    switch (name) {
      case 'pwrite64': {
        const at = Number(/(\d+)$/.exec(args)![1])
        const [[, hex] = []] = args.matchAll(TEXT)
        return add({ is: 'write', file, at, bytes: decoded(hex!).subarray(0, result || undefined), ended })
      }
      case 'ftruncate':
        return add({ is: 'truncate', file, size: Number(/(\d+)$/.exec(args)![1]), ended })
      case 'fsync':
      case 'fdatasync':
        return add({ is: 'sync', file, began }, ended)
      case 'openat':
        if (args.includes('O_CREAT')) add({ is: 'create', file, ended })
        return
      case 'unlink':
        return add({ is: 'unlink', file, ended })
    }
  }
}

const CLIENTS = 8
/** Visitors who send the form twice. */
const TWICE = 40
/** Visitors whose signup is in flight when the process is killed. */
const LEFT = 16
/** The path of the receiver. */
const EVENTS = '/events'

interface Run {
  readonly entry?: string
  /** Signups that are acknowledged before it is stopped. */
  readonly signups: number
  readonly end?: 'SIGTERM' | 'SIGKILL'
  /** Has addresses of its own. */
  readonly round?: number
  /** Whether there is a provider, beside a receiver of events. */
  readonly provider?: boolean
}

/** Runs the service under load; returns what it did to its files, and when it answered and made attempts. */
export async function runTraced(
  { t, ledger, folder, random, start }: Fixture,
  { entry, signups, end = 'SIGTERM', round = 0, provider = false }: Run,
): Promise<readonly Call[]> {
  let contacts = 0
  const others = await startReceiver(t, ({ path }) =>
    path === EVENTS ? { status: 204 } : { status: 200, body: { data: { id: ++contacts, lists: [{ id: 1 }] } } },
  )
  const env = {
    WEBHOOK_URL: others.url + EVENTS,
    WEBHOOK_SECRET: webhookSecret,
    ...(provider && {
      PROVIDER: 'listmonk',
      LISTMONK_BASE_URL: others.url,
      LISTMONK_USER: 'torture',
      LISTMONK_TOKEN: 'torture',
      LISTMONK_LIST_IDS: '1',
    }),
  }
  const file = join(folder, `trace-${round}`)
  const program = await start(env, { through: tracedTo(file), ...(entry === undefined ? {} : { entry }) })
  const before = ledger.acknowledged
  const send = async (email: string) => ledger.note(email, await visit(program, email))
  const emailOf = (client: number, i: number) => `own-${round}-${client}-${i}@quixote.example`
  // An earlier process may have stored them without an answer.
  await Promise.all(ledger.unclear().map(send))
  await load({
    ledger,
    clients: CLIENTS,
    round,
    to: () => program.baseUrl,
    goesOn: answer => answer?.status === 200 && ledger.acknowledged < before + signups,
  })
  for (let i = 0; i < TWICE; i++) {
    const first = send(emailOf(CLIENTS, i))
    await wait(1 + random() * 8)
    await Promise.all([first, send(emailOf(CLIENTS, i))])
  }
  assert.ok(ledger.acknowledged >= before + signups, 'not everybody was acknowledged')
  const left = end === 'SIGKILL' ? Array.from({ length: LEFT }, (_, i) => send(emailOf(CLIENTS + 1, i))) : []
  await wait(end === 'SIGKILL' ? 2 + random() * 8 : 0)
  await program.end(end)
  await Promise.all(left)
  return readTrace(file, join(folder, 'data'))
}

/** What was promised so far: addresses, in lower case. */
export class Promised {
  /** Visitors whose signup was answered with 200. */
  readonly acknowledged = new Set<string>()
  /** The provider was asked to add them. */
  readonly handedOver = new Set<string>()
  /** The receiver was sent their event. */
  readonly delivered = new Set<string>()

  note(call: Call): void {
    if (call.is === 'answer' && call.status === 200 && call.email !== undefined) this.acknowledged.add(call.email)
    if (call.is === 'send') (call.path === EVENTS ? this.delivered : this.handedOver).add(call.email)
  }
}

const STORED = `select email_key, event_at,
  state <> 'pending' or (select token is not null or doubt or attempts from delivery
    where contact = contact.number and kind = 'handover') as tried,
  (select state <> 'waiting' or token is not null or doubt or attempts from delivery
    where contact = contact.number and kind = 'joined') as claimed from contact`

/** Writes what is left on a disk to the folder of the fixture. @returns the database. */
export function writeDisk({ folder }: Fixture, files: ReadonlyMap<string, Buffer>): string {
  const left = join(folder, 'left')
  rmSync(left, { recursive: true, force: true })
  mkdirSync(left)
  for (const [name, bytes] of files) {
    // The index of the log is memory; it is made again.
    if (!name.endsWith('-shm') && !name.endsWith('-lock')) writeFileSync(join(left, basename(name)), bytes)
  }
  return join(left, 'waitlist.db')
}

/** Who was acknowledged is there, once, with an event, and each attempt that began is known to have begun. */
export function assertPromised(path: string, { acknowledged, handedOver, delivered }: Promised, where: string): void {
  const database = new DatabaseSync(path)
  try {
    assert.equal(database.prepare('pragma integrity_check').get()?.integrity_check, 'ok', where)
    const isMade = database.prepare("select 1 from sqlite_schema where name = 'contact'").get() !== undefined
    const rows = isMade ? database.prepare(STORED).all() : []
    const stored = new Map(rows.map(row => [row.email_key as string, row]))
    const lacking = (emails: ReadonlySet<string>, what: 'event_at' | 'tried' | 'claimed') =>
      [...emails].filter(email => !stored.get(email)?.[what])
    assert.deepEqual(lacking(acknowledged, 'event_at'), [], `lost: ${where}`)
    assert.deepEqual(lacking(handedOver, 'tried'), [], `handed over without a claim: ${where}`)
    assert.deepEqual(lacking(delivered, 'claimed'), [], `delivered without a claim: ${where}`)
    assert.equal(stored.size, rows.length, `doubled: ${where}`)
  } finally {
    database.close()
  }
}
