import { Agent, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import type { Ledger } from './ledger.ts'

export interface SignupAnswer {
  readonly status: number
  readonly alreadyExisted?: boolean
}

/** Milliseconds; whoever is answered later, or not at all on an open connection, was left hanging. */
const HANGING = 60_000

/** Null: no whole answer came, so nothing was promised. Rejects when it takes too long. */
export function signUp(
  baseUrl: string,
  agent: Agent,
  email: string,
  more: Record<string, string> = {},
): Promise<SignupAnswer | null> {
  const request = baseUrl.startsWith('https:') ? requestHttps : requestHttp
  return new Promise((resolve, reject) => {
    const posted = request(
      `${baseUrl}/api/waitlist`,
      { method: 'POST', agent, headers: { 'content-type': 'application/json', ...more } },
      response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', chunk => {
          text += chunk
        })
        response.on('error', () => resolve(null))
        response.on('close', () => {
          clearTimeout(timer)
          if (!response.complete) return resolve(null)
          // A balancer's own refusal may be a page.
          const isJson = response.headers['content-type']?.includes('json')
          const { alreadyExisted } = isJson ? JSON.parse(text) : {}
          resolve({ status: response.statusCode!, alreadyExisted })
        })
      },
    )
    const timer = setTimeout(() => {
      reject(new Error(`no answer for ${HANGING} ms`))
      posted.destroy()
    }, HANGING)
    posted.on('error', () => {
      clearTimeout(timer)
      resolve(null)
    })
    posted.end(JSON.stringify({ name: 'Zebulon Quixote', email }))
  })
}

/** What one visitor is told. */
export interface Told {
  readonly status: number
  readonly error?: string
  readonly alreadyExisted?: boolean
  readonly automationTriggered?: boolean
}

/** One signup on a connection of its own, with what else is in its body. Null: no whole answer came. */
export async function visit(
  { baseUrl }: { readonly baseUrl: string },
  email: string,
  more: object = {},
): Promise<Told | null> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'Zebulon Quixote', email, ...more })
  try {
    const response = await fetch(`${baseUrl}/api/waitlist`, { method: 'POST', headers, body })
    return { status: response.status, ...((await response.json()) as object) }
  } catch {
    return null
  }
}

export interface Load {
  readonly ledger: Ledger
  /** Connections, each of which sends one signup after the other. */
  readonly clients: number
  /** What connects, and is destroyed at the end. */
  readonly agent?: Agent
  /** Addresses of its own are made from it. */
  readonly round: number
  /** Milliseconds between an answer and the next signup of a client. */
  readonly rest?: number
  /** Where a client sends its next signup. */
  to(client: number): string
  /** Told of every outcome. False: this client stops. */
  goesOn(answer: SignupAnswer | null, client: number): boolean
}

/** Signs up on keep-alive connections: mostly new addresses, some that were sent before. */
export async function load({
  ledger,
  clients,
  agent = new Agent({ keepAlive: true, maxSockets: clients }),
  round,
  rest = 0,
  to,
  goesOn,
}: Load): Promise<void> {
  const client = async (number: number): Promise<void> => {
    for (let i = 0; ; i++) {
      // Every third address is shared: all clients, in all rounds, race for it.
      const address = i % 3 === 0 ? `shared-${round % 3}-${i}` : `own-${round}-${number}-${i}`
      const email = `${address}@${number % 2 ? 'quixote' : 'QUIXOTE'}.example`
      const answer = await signUp(to(number), agent, email)
      ledger.note(email, answer)
      if (!goesOn(answer, number)) return
      if (rest > 0) await wait(rest)
    }
  }
  try {
    await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  } finally {
    agent.destroy()
  }
}
