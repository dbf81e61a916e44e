/**
 * Replays what was recorded of an earlier commit against this checkout: status, headers and body of the six resources under
 * the settings of scenarios.ts, and of the malformed requests. `.ci/run` does it; it prints each difference that
 * differences.ts does not allow.
 *
 *     npx node test/recorded/run.ts                       all of them
 *     npx node test/recorded/run.ts 'CONFIRM=mail'        combinations with this in their name; "malformed" is one, too
 *     npx node test/recorded/run.ts --record <checkout>   records all of them anew, from that checkout
 *
 * To allow a difference, add its pattern and the reason to differences.ts. A setting that was renamed is renamed in
 * scenarios.ts; the recording stays.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib'
import { type Challenge, solveChallenge } from 'altcha-lib'
import { deriveKey } from 'altcha-lib/algorithms/pbkdf2'
import { allowed } from './differences.ts'
import { type Scenario, scenarios } from './scenarios.ts'

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const FILE = here('recording.json.br')
const MALFORMED = 'malformed'
/** Services at a time. */
const AT_ONCE = 3
/** Milliseconds without a byte after which a client that waits for the end shuts down its side. */
const QUIET = 3_000
/** Milliseconds in which every connection ends. */
const LONGEST = 120_000

interface Recording {
  /** Each distinct answer once. */
  readonly answers: string[]
  /** By combination and request: the numbers of its answers. The same request may be sent several times. */
  readonly combinations: Record<string, [what: string, answer: number][]>
  readonly malformed: { what: string; bytes: string; isHalfClosed: boolean }[]
}
type Played = readonly (readonly [what: string, answer: string])[]

// Playing

async function play(checkout: string, scenario: Scenario): Promise<Played> {
  const { requests, isTls } = scenario
  return withService(checkout, scenario, async port => {
    const played: [string, string][] = []
    const etags = new Map<string, string>()
    let challenge = ''
    for (const { what, bytes } of requests) {
      const path = bytes.split(' ', 2)[1]!
      let sent = bytes.replaceAll('{etag}', etags.get(path) ?? '"none"')
      if (sent.includes('{solution}')) sent = withSolution(sent, await solved(challenge))
      const answer = await talk(port, Buffer.from(sent), { isTls, isHead: sent.startsWith('HEAD ') })
      const [, etag] = /^etag: (.*)\r$/im.exec(answer) ?? []
      if (etag !== undefined) etags.set(path, etag)
      if (path === '/api/challenge' && answer.includes('"signature"'))
        challenge = answer.slice(answer.indexOf('\r\n\r\n'))
      played.push([what, masked(answer, port)])
    }
    return played
  })
}

/** Several at a time, all to one service. Whether an address is new must not depend on who comes first. */
function playMalformed(checkout: string, all: Recording['malformed']): Promise<Played> {
  return withService(checkout, { settings: {} }, async port => {
    const body = '{"name":"Mallory","email":"taken@example.com"}'
    const first = `POST /api/waitlist HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`
    await talk(port, Buffer.from(`${first}\r\n\r\n${body}`), {})
    const played: [string, string][] = []
    const numbers = all.keys()
    const client = async () => {
      for (const i of numbers) {
        const { what, bytes, isHalfClosed } = all[i]!
        const answer = await talk(port, Buffer.from(bytes, 'latin1'), { untilClosed: true, isHalfClosed })
        played[i] = [what, masked(answer, port)]
      }
    }
    await Promise.all(Array.from({ length: 30 }, client))
    return played
  })
}

async function withService<Result>(
  checkout: string,
  { settings, vendor, files = {}, isTls }: Omit<Scenario, 'requests'>,
  use: (port: number) => Promise<Result>,
): Promise<Result> {
  const cwd = mkdtempSync(join(tmpdir(), 'waitlist-recorded-'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
  const tool = vendor && emailTool(vendor)
  const port = await listening(createServer(), true)
  const env: Record<string, string> = { RATE_LIMIT: '1000000', SHUTDOWN_DELAY: '0', ...settings }
  if (isTls)
    for (const [name, end] of [
      ['CERT', 'crt'],
      ['KEY', 'key'],
    ])
      env[`TLS_${name}_FILE`] = here(`../fixtures/tls/first.${end}`)
  if (tool) env.LOOPS_BASE_URL = `http://127.0.0.1:${await listening(tool)}`
  const service = spawn(process.execPath, [join(checkout, 'bin/waitlist.js'), 'serve'], {
    cwd,
    env: { PATH: process.env.PATH, HOST: '127.0.0.1', PORT: String(port), ...env },
  })
  let said = ''
  for (const stream of [service.stdout, service.stderr]) stream.on('data', chunk => (said += chunk))
  const exited = once(service, 'exit')
  try {
    while (!(await isListening(port))) {
      if (service.exitCode !== null) throw new Error(`the service did not start:\n${said}`)
      await wait(20)
    }
    return await use(port)
  } finally {
    service.kill('SIGKILL')
    await exited
    tool?.closeAllConnections()
    tool?.close()
    rmSync(cwd, { recursive: true, force: true })
  }
}

async function listening(server: Server, closes = false): Promise<number> {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  if (closes) await once(server.close(), 'close')
  return port
}

function isListening(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

/** Loops, as far as it is asked here. */
const emailTool = (how: NonNullable<Scenario['vendor']>) =>
  createHttpServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const say = (status: number, json: object, headers = {}) =>
      response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(json))
    if (how === 'is slow') return
    if (how === 'hangs up') return void request.socket.destroy()
    if (how === 'refuses the key') return void say(401, { success: false, message: 'Invalid API key' })
    if (how === 'fails') return void say(500, { success: false, message: 'Internal error' })
    if (how === 'limits') return void say(429, { success: false, message: 'Too many' }, { 'retry-after': '60' })
    const { email } = JSON.parse(body || '{}') as { email?: string }
    if (!request.url!.includes('/contacts/create')) return void say(200, { success: true })
    if (email?.startsWith('existing')) return void say(409, { success: false, message: 'Email is already on list.' })
    if (email?.startsWith('invalid')) return void say(400, { success: false, message: 'Invalid email address.' })
    say(200, { success: true, id: `id-${email?.split('@', 1)}` })
  })

interface Talk {
  readonly isTls?: boolean | undefined
  readonly isHead?: boolean
  /** All that comes until the connection is closed. Otherwise the first answer. */
  readonly untilClosed?: boolean
  /** The client shuts down its side at once. Otherwise it does when nothing comes for a while. */
  readonly isHalfClosed?: boolean
}

function talk(port: number, bytes: Buffer, { isTls, isHead, untilClosed, isHalfClosed }: Talk): Promise<string> {
  return new Promise(resolve => {
    const place = { host: '127.0.0.1', port, allowHalfOpen: true }
    const socket = isTls ? connectTls({ ...place, rejectUnauthorized: false }) : connect(place)
    let received = ''
    const finish = (end = '') => {
      clearTimeout(timer)
      socket.destroy()
      resolve(received + end)
    }
    const shutDown = () => {
      // After an answer that says so, the service must close the connection by itself.
      if (untilClosed && !/^connection: close/im.test(received)) socket.end()
      timer = setTimeout(finish, LONGEST, '(still open)')
    }
    let timer = setTimeout(shutDown, QUIET)
    socket.setEncoding('latin1').on('data', chunk => {
      received += chunk
      if (!untilClosed && isWhole(received, isHead)) finish()
      else timer.refresh()
    })
    socket.on('end', () => finish()).on('error', () => finish())
    socket.write(bytes)
    if (isHalfClosed) socket.end()
  })
}

/** Whether there is one final answer. */
function isWhole(received: string, isHead = false): boolean {
  const end = received.indexOf('\r\n\r\n') + 4
  if (end === 3) return false
  const status = Number(received.split(' ', 2)[1])
  if (status < 200) return isWhole(received.slice(end), isHead)
  const length = Number(/^content-length: (\d+)\r$/im.exec(received.slice(0, end))?.[1] ?? 0)
  return isHead || status === 304 || received.length - end >= length
}

async function solved(text: string): Promise<string> {
  const challenge = JSON.parse(text) as Challenge
  const solution = await solveChallenge({ challenge, deriveKey })
  return Buffer.from(JSON.stringify({ challenge, solution })).toString('base64')
}

const withSolution = (request: string, solution: string): string => {
  const [head, body = ''] = request.replace('{solution}', solution).split('\r\n\r\n', 2)
  return `${head!.replace(/content-length: \d+/i, `Content-Length: ${body.length}`)}\r\n\r\n${body}`
}

/** Without what is never the same. */
const masked = (answer: string, port: number): string =>
  answer
    .replaceAll(`:${port}`, ':<port>')
    .replaceAll(/^date: .*\r$/gim, 'Date: <date>\r')
    .replaceAll(/^etag: "[^"]*"\r$/gim, 'etag: "<etag>"\r')
    .replaceAll(/'sha256-[^']*'/g, "'sha256-<hash>'")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
    .replaceAll(/"contactId":"[0-9a-f]{8}-[0-9a-f-]{27}"/g, '"contactId":"<id>"')
    .replaceAll(/;r=9999\d\d;/g, ';r=<most>;')
    .replaceAll(/^(retry-after: |ratelimit: .*;t=)(\d+)\r$/gim, (_, name, seconds) => `${name}${roughly(seconds)}\r`)
    .replaceAll(/ in (\d+) (seconds|minutes|Sekunden|Minuten)\b/g, (_, count, unit) => ` in ${roughly(count)} ${unit}`)
    .replaceAll(/"(nonce|salt|keyPrefix|keySignature|signature|expiresAt)":("\w+"|\d+)/g, '"$1":"<$1>"')

const roughly = (seconds: string) => `<about ${Math.ceil(Number(seconds) / 60) * 60}>`

// Comparing

/** Longer contents are documents, which many requests get: what differs in one is told once. */
const LONG = 2_000

function* differences(what: string, recorded: string, now: string): Generator<string> {
  const [head, body] = split(recorded)
  const [headNow, bodyNow] = split(now)
  // The length follows from the content; an answer to HEAD has that of a document alone.
  const isCompared = (line: string) =>
    !/^content-length: \d{4,}$/i.test(line) && (body === bodyNow || !/^content-length/i.test(line))
  yield* lines(`${what} · head`, head.filter(isCompared), headNow.filter(isCompared))
  if (body === bodyNow) return
  const type = head.find(line => /^content-type/i.test(line))?.replace(/^.*: |;.*/g, '')
  const where = Math.min(body.length, bodyNow.length) < LONG ? what : `the document, ${type}`
  const [json, jsonNow] = [parsed(body), parsed(bodyNow)]
  if (json !== undefined && jsonNow !== undefined) yield* members(where, '$', json, jsonNow)
  else yield* lines(`${where} · body`, texts(body), texts(bodyNow))
}

/** Without lines that are blank or only a tag without attributes. */
const texts = (body: string) => body.split(/\n|(?<=>)(?=<)/).filter(line => !/^\s*(<\/?\w+>)?$/.test(line))

function split(answer: string): [head: string[], body: string] {
  // After an interim answer, such as 100, comes the final one.
  const interim = /^HTTP\/1\.1 1\d\d .*?\r\n\r\n/s.exec(answer)?.[0] ?? ''
  if (interim !== '') {
    const [head, body] = split(answer.slice(interim.length))
    return [[interim.trim(), ...head], body]
  }
  const end = answer.indexOf('\r\n\r\n')
  if (end === -1) return [[answer], '']
  // Who says "close", Node or we, depends on what came behind the request by then.
  const head = answer.slice(0, end).replace(/^connection: close$/gim, 'connection: close')
  // The order of fields has no meaning (RFC 9110 §5.3).
  return [head.split('\r\n').sort(), Buffer.from(answer.slice(end + 4), 'latin1').toString()]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function* members(what: string, path: string, before: unknown, after: unknown): Generator<string> {
  if (JSON.stringify(before) === JSON.stringify(after)) return
  if (!isObject(before) || !isObject(after)) {
    yield `~ ${what} · ${path}: ${JSON.stringify(before)?.slice(0, 200)} → ${JSON.stringify(after)?.slice(0, 200)}`
    return
  }
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  let isSame = true
  for (const key of keys) {
    for (const each of members(what, `${path}.${key}`, before[key], after[key])) {
      isSame = false
      yield each
    }
  }
  if (isSame) yield `~ ${what} · ${path}: the order of its members, now ${Object.keys(after)}`
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** The lines that are only in one of them, from the longest common subsequence; of long texts without their common ends. */
function* lines(what: string, before: string[], after: string[]): Generator<string> {
  let start = 0
  while (start < before.length && before[start] === after[start]) start++
  let end = 0
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end++
  const [a, b] = [before, after].map(all => all.slice(start, all.length - end)) as [string[], string[]]
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1))
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i]![j] = a[i] === b[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!)
    }
  }
  for (let i = 0, j = 0; i < a.length || j < b.length; ) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      i++
      j++
    } else if (j === b.length || (i < a.length && common[i + 1]![j]! >= common[i]![j + 1]!))
      yield `- ${what}: ${a[i++]}`
    else yield `+ ${what}: ${b[j++]}`
  }
}

// Running

const [flag, checkout] = process.argv.slice(2)
if (flag === '--record') await record(resolve(checkout!))
else await replay(flag ?? '')

async function record(from: string): Promise<void> {
  const { malformed } = (await import(join(from, 'torture/corpus/malformed.ts'))) as {
    malformed: readonly { what: string; bytes: Buffer; isHalfClosed?: boolean }[]
  }
  const corpus = malformed.map(({ what, bytes, isHalfClosed = false }) => ({
    what,
    bytes: bytes.toString('latin1'),
    isHalfClosed,
  }))
  const answers = new Map<string, number>()
  const combinations: Recording['combinations'] = {}
  const keep = (name: string, played: Played) => {
    for (const [, answer] of played) if (!answers.has(answer)) answers.set(answer, answers.size)
    combinations[name] = played.map(([what, answer]) => [what, answers.get(answer)!])
  }
  for (const [name, scenario] of Object.entries(scenarios)) keep(name, await play(from, scenario))
  keep(MALFORMED, await playMalformed(from, corpus))
  const recording: Recording = { answers: [...answers.keys()], combinations, malformed: corpus }
  const text = Buffer.from(JSON.stringify(recording))
  const { BROTLI_PARAM_LGWIN, BROTLI_PARAM_QUALITY } = constants
  writeFileSync(FILE, brotliCompressSync(text, { params: { [BROTLI_PARAM_QUALITY]: 11, [BROTLI_PARAM_LGWIN]: 24 } }))
}

async function replay(wanted: string): Promise<void> {
  if (!existsSync(FILE)) throw new Error('there is no recording')
  const { answers, combinations, malformed } = JSON.parse(
    brotliDecompressSync(readFileSync(FILE)).toString(),
  ) as Recording
  const names = Object.keys(combinations).filter(name => name.includes(wanted))
  if (names.length === 0) throw new Error(`no combination has "${wanted}" in its name`)
  /** By difference, the combinations that have it. */
  const found = new Map<string, Set<string>>()
  const note = (name: string, difference: string) => {
    found.set(difference, (found.get(difference) ?? new Set()).add(name))
  }
  const queue = names.values()
  const player = async () => {
    for (const name of queue) {
      const scenario = scenarios[name]
      if (name !== MALFORMED && scenario === undefined) {
        note(name, '- the combination itself')
        continue
      }
      const ours = here('../..')
      const played = name === MALFORMED ? await playMalformed(ours, malformed) : await play(ours, scenario!)
      const recorded = combinations[name]!
      for (const [i, [what, answer]] of recorded.entries()) {
        const now = played[i]?.[0] === what ? played[i][1] : '(another request, or none, is sent)'
        for (const each of differences(what, answers[answer]!, now)) note(name, each)
      }
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, player))

  const used = new Set<RegExp>()
  let unlisted = 0
  for (const [difference, where] of found) {
    const open = [...where].filter(name => {
      const reason = allowed.find(({ pattern }) => pattern.test(`[${name}] ${difference}`))
      if (reason) used.add(reason.pattern)
      return reason === undefined
    })
    if (open.length === 0) continue
    unlisted++
    console.log(
      `[${open[0]}] ${difference.slice(0, 300)}${open.length > 1 ? `   (and ${open.length - 1} more: ${open.slice(1, 4).join('; ')})` : ''}`,
    )
  }
  const unused = wanted === '' ? allowed.filter(({ pattern }) => !used.has(pattern)) : []
  for (const { pattern } of unused) console.log(`nothing differs as ${pattern} allows any more: take it out`)
  console.log(`${names.length} combinations, ${found.size} differences, ${unlisted} of them not allowed`)
  if (unlisted > 0) process.exitCode = 1
}
