/** Other people's HTTP servers: vendors, receivers of webhooks, chats. They keep what they get, and misbehave when told to. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { listening } from './port.ts'

/** One request, as it arrived. */
export interface Received {
  readonly method: string
  /** Without the query, percent-encoding undone. */
  readonly path: string
  /** The same, cut at its slashes before the encoding is undone: a slash in an address is none. */
  readonly segments: readonly string[]
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  /** The body as JSON; undefined when it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: fakes look into bodies of every shape
  readonly json: any
}

export interface Said {
  readonly status: number
  /** Sent as JSON; a text is sent as it is. */
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** What is done with a request instead of answering it well. */
export type Deed = (response: ServerResponse, received: Received) => void

export interface Receiver {
  readonly url: string
  /** Every request that arrived whole, in order of arrival. */
  readonly received: readonly Received[]
  /** Resolves when so many requests have arrived. */
  arrived(count: number): Promise<void>
  /** Does these, one for each of the next requests, then behaves; null: behaves. */
  next(...what: readonly (Misbehaviour | Refusal | null)[]): void
  /** From now on misbehaves in this way. */
  always(what: Misbehaviour): void
  behave(): void
}

/** Serves on a free port until the test ends. */
export async function startReceiver(
  test: Pick<TestContext, 'after'>,
  answer: (received: Received) => Said | Deed,
): Promise<Receiver> {
  const received: Received[] = []
  let planned: readonly (Misbehaviour | Refusal | null)[] = []
  let always: Misbehaviour | undefined

  const server = createServer(async (request, response) => {
    const one = await readRequest(request)
    received.push(one)
    const [first, ...others] = planned
    planned = others
    const what = first ?? always
    deedFor(what, () => answer(one))(response, one)
    server.emit('arrived')
  })
  // A pace may leave a connection idle for as long as Node keeps one, and a call must not meet its end.
  server.keepAliveTimeout = 0
  return {
    url: await listening(test, server),
    received,
    async arrived(count) {
      while (received.length < count) await once(server, 'arrived')
    },
    next: (...what) => {
      planned = what
    },
    always(what) {
      always = what
    },
    behave() {
      planned = []
      always = undefined
    },
  }
}

/** Resolves when all of it has arrived. */
export async function readRequest(request: IncomingMessage): Promise<Received> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  const url = new URL(request.url!, 'http://receiver')
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
  return {
    method: request.method!,
    path: decodeURIComponent(url.pathname),
    segments: url.pathname.split('/').map(decodeURIComponent),
    query: Object.fromEntries(url.searchParams),
    headers: Object.fromEntries(headers),
    text,
    json: jsonIn(text),
  }
}

const textOf = ({ body }: Said): string =>
  body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body)

export const say =
  (said: Said): Deed =>
  response => {
    response.writeHead(said.status, { 'content-type': 'application/json', ...said.headers })
    response.end(textOf(said))
  }
export const never: Deed = () => {}
export const reset: Deed = response => void response.destroy()
const html = say({
  status: 502,
  headers: { 'content-type': 'text/html' },
  body: '<html><body><h1>502 Bad Gateway</h1></body></html>',
})
/** Says so much of it, and breaks the connection. */
export const cut =
  (said: Said, length: number): Deed =>
  response => {
    const text = textOf(said)
    response.writeHead(said.status, { 'content-type': 'application/json', 'content-length': text.length + 10 })
    response.write(text.slice(0, length), () => response.destroy())
  }

const failed = say({ status: 500, body: { message: 'Internal server error' } })
const half = (text: string) => text.slice(0, Math.floor(text.length / 2))

/** Before the request has any effect. */
const before = {
  'hang before': never,
  'reset before': reset,
  '500 before': failed,
  '502 with HTML': html,
  '503': say({ status: 503, body: { message: 'Service unavailable' } }),
  '429': say({ status: 429, body: 'Retry later' }),
  '429 with Retry-After': say({ status: 429, body: {}, headers: { 'retry-after': '0' } }),
} satisfies Record<string, Deed>

/** After it has taken effect, with the answer that was due. */
const after = {
  'hang after': () => never,
  'reset after': () => reset,
  '500 after': () => failed,
  'truncated JSON': (said: Said) => say({ ...said, body: half(textOf(said)) }),
  'cut in the middle': (said: Said) => cut(said, textOf(said).length / 2),
  'wrong types': (said: Said) => say({ ...said, body: wrongTypes(textOf(said)) }),
  slow: (said: Said) => (response, received) => void setTimeout(() => say(said)(response, received), 60),
} satisfies Record<string, (said: Said) => Deed>

/** Everything that vendors, and what is between us and them, do instead of answering. */
export type Misbehaviour = keyof typeof before | keyof typeof after

/** What a vendor, or a firewall before it, says for reasons that no documentation has; nothing is done. */
export type Refusal = `${400 | 403 | 409 | 422} of unknown wording`

/** Words that would fit a refused address, but for their sense. */
const WORDING = 'Blocked by policy: the email list of this key is not valid, or its format is not enabled'
const detail = { code: 'policy', title: 'Policy', message: WORDING, detail: WORDING }
const unknownWording = { ...detail, error: WORDING, errors: [detail] }

function deedFor(what: Misbehaviour | Refusal | undefined, answer: () => Said | Deed): Deed {
  if (what?.endsWith('of unknown wording')) return say({ status: Number.parseInt(what, 10), body: unknownWording })
  if (Object.hasOwn(before, what ?? '')) return before[what as keyof typeof before]
  const said = answer()
  if (typeof said === 'function') return said
  return what === undefined ? say(said) : after[what as keyof typeof after](said)
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
  return turned(jsonIn(text) ?? 7)
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
