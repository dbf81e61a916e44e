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
  /** Misbehaves with the next request, then behaves. */
  next(what: Misbehaviour): void
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
  let next: Misbehaviour | undefined
  let always: Misbehaviour | undefined

  const server = createServer(async (request, response) => {
    const one = await readRequest(request)
    received.push(one)
    const what = next ?? always
    next = undefined
    const answered = what === undefined ? answer(one) : misbehaviours[what](() => answer(one) as Said)
    const deed = typeof answered === 'function' ? answered : say(answered)
    deed(response, one)
    server.emit('arrived')
  })
  // A pause may leave a connection idle for as long as Node keeps one, and a call must not meet its end.
  server.keepAliveTimeout = 0
  return {
    url: await listening(test, server),
    received,
    async arrived(count) {
      while (received.length < count) await once(server, 'arrived')
    },
    next(what) {
      next = what
    },
    always(what) {
      always = what
    },
    behave() {
      next = always = undefined
    },
  }
}

/** Resolves when all of it has arrived. */
async function readRequest(request: IncomingMessage): Promise<Received> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  const url = new URL(request.url!, 'http://receiver')
  const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
  return {
    method: request.method!,
    path: decodeURIComponent(url.pathname),
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

const failed: Said = { status: 500, body: { message: 'Internal server error' } }

/** What vendors, and what is between us and them, do instead of answering: before the request has taken effect, or after. */
const misbehaviours = {
  'hang before': () => never,
  'reset before': () => reset,
  '500 before': () => failed,
  '502 with HTML': () => ({ status: 502, headers: { 'content-type': 'text/html' }, body: '<h1>502 Bad Gateway</h1>' }),
  '503': () => ({ status: 503, body: { message: 'Service unavailable' } }),
  '429': () => ({ status: 429, body: 'Retry later' }),
  'reset after'(answer) {
    answer()
    return reset
  },
  'truncated JSON'(answer) {
    const said = answer()
    return { ...said, body: textOf(said).slice(0, 8) }
  },
} satisfies Record<string, (answer: () => Said) => Said | Deed>

export type Misbehaviour = keyof typeof misbehaviours

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
