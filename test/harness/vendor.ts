import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { listening } from './listening.ts'

/** One request, as it arrived. */
export interface Asked {
  readonly method: string
  /** Without the query, percent-encoding undone. */
  readonly path: string
  /** The same, cut at its slashes before the encoding is undone: a slash in an address is none. */
  readonly segments: readonly string[]
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  /** The body as JSON; undefined when it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: fakes look into bodies of every shape
  readonly json: any
}

/** One request, with the text of its body. */
export interface Received extends Asked {
  readonly text: string
}

export interface Said {
  readonly status: number
  /** Sent as JSON; a text is sent as it is. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Everything that vendors, and what is between us and them, do instead of answering. */
export const misbehaviours = [
  'hang before',
  'hang after',
  'reset before',
  'reset after',
  '500 before',
  '500 after',
  '502 with HTML',
  '503',
  '429',
  '429 with Retry-After',
  'truncated JSON',
  'cut in the middle',
  'huge body',
  'wrong types',
  'slow',
] as const
/** "before" and "after" are about the effect of the request: one that is not done, or one that is. */
export type Misbehaviour = (typeof misbehaviours)[number]

/** What a vendor, or a firewall before it, says for reasons that no documentation has; nothing is done. */
export type Refusal = `${400 | 403 | 409 | 422} of unknown wording`

/** Words that would fit a refused address, but for their sense. */
const WORDING = 'Blocked by policy: the email list of this key is not valid, or its format is not enabled'
const unknownWording = (what: string): Said => {
  const status = Number.parseInt(what, 10)
  const detail = { code: 'policy', title: 'Policy', message: WORDING, detail: WORDING }
  return { status, body: { ...detail, error: WORDING, errors: [{ ...detail }] } }
}

/** Those with which the request may have taken effect. */
export const tookEffect: ReadonlySet<Misbehaviour> = new Set<Misbehaviour>([
  'hang after',
  'reset after',
  '500 after',
  'truncated JSON',
  'cut in the middle',
  'huge body',
  'wrong types',
  'slow',
])

export interface VendorServer {
  readonly url: string
  /** Every request so far, in order of arrival. */
  readonly asked: readonly Asked[]
  /** Does these, one for each of the next requests, then behaves. */
  next(...what: readonly (Misbehaviour | Refusal)[]): void
  /** From now on: misbehaves with this probability, in one of these ways, the same for the same seed. */
  chaos(seed: number, probability: number, among: readonly Misbehaviour[]): void
  behave(): void
}

/** Milliseconds of a slow answer. */
const SLOW = 60

/** Serves a fake that keeps state, on a free port, until the test ends. */
export async function startVendor(
  test: Pick<TestContext, 'after'>,
  answer: (asked: Asked) => Said,
): Promise<VendorServer> {
  const asked: Asked[] = []
  let planned: (Misbehaviour | Refusal)[] = []
  let choose: () => Misbehaviour | undefined = () => undefined

  const server = createServer(async (request, response) => {
    const one = await readRequest(request)
    asked.push(one)
    serve(one, planned.shift() ?? choose(), response)
  })

  function serve(one: Asked, what: Misbehaviour | Refusal | undefined, response: ServerResponse): void {
    if (what?.endsWith('of unknown wording')) return say(response, unknownWording(what))
    if (what === 'hang before') return
    if (what === 'reset before') return void response.destroy()
    if (what === '500 before') return say(response, { status: 500, body: { message: 'Internal server error' } })
    if (what === '502 with HTML') {
      const headers = { 'content-type': 'text/html' }
      return say(response, { status: 502, body: '<html><body><h1>502 Bad Gateway</h1></body></html>', headers })
    }
    if (what === '503') return say(response, { status: 503, body: { message: 'Service unavailable' } })
    if (what === '429') return say(response, { status: 429, body: 'Retry later' })
    if (what === '429 with Retry-After')
      return say(response, { status: 429, body: {}, headers: { 'retry-after': '0' } })
    const said = answer(one)
    if (what === 'hang after') return
    if (what === 'reset after') return void response.destroy()
    if (what === '500 after') return say(response, { status: 500, body: { message: 'Internal server error' } })
    if (what === 'slow') return void setTimeout(() => say(response, said), SLOW)
    const text = textOf(said)
    if (what === 'truncated JSON') return say(response, { ...said, body: text.slice(0, Math.floor(text.length / 2)) })
    if (what === 'huge body') return say(response, { ...said, body: `${text}${' '.repeat(200_000)}` })
    if (what === 'wrong types') return say(response, { ...said, body: wrongTypes(text) })
    if (what === 'cut in the middle') {
      response.writeHead(said.status, { 'content-type': 'application/json', 'content-length': text.length + 10 })
      response.write(text.slice(0, Math.floor(text.length / 2)), () => response.destroy())
      return
    }
    say(response, said)
  }

  // A pace may leave a connection idle for as long as Node keeps one, and a call must not meet its end.
  server.keepAliveTimeout = 0
  const url = await listening(test, server)
  return {
    url,
    asked,
    next: (...what) => {
      planned = [...what]
    },
    chaos(seed, probability, among) {
      const random = seeded(seed)
      choose = () => (random() < probability ? among[Math.floor(random() * among.length)] : undefined)
    },
    behave() {
      planned = []
      choose = () => undefined
    },
  }
}

/** Resolves when all of it has arrived. */
export async function readRequest(request: IncomingMessage): Promise<Received> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  const url = new URL(request.url!, 'http://vendor')
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
  return {
    method: request.method!,
    path: decodeURIComponent(url.pathname),
    segments: url.pathname.split('/').map(decodeURIComponent),
    query: Object.fromEntries(url.searchParams),
    headers: Object.fromEntries(headers),
    json: parsed(text),
    text,
  }
}

const textOf = ({ body }: Said): string =>
  body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)

function say(response: ServerResponse, said: Said): void {
  response.writeHead(said.status, { 'content-type': 'application/json', ...said.headers })
  response.end(textOf(said))
}

/** Every value is replaced by one of another type; names stay. What is no JSON becomes a number. */
function wrongTypes(text: string): unknown {
  const turned = (value: unknown): unknown => {
    if (Array.isArray(value)) return { 0: value.length }
    if (typeof value === 'object' && value !== null) {
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, turned(each)]))
    }
    return typeof value === 'boolean' ? 'yes' : []
  }
  return turned(parsed(text) ?? 7)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
