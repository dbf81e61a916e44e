import { type Agent, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import type { Ledger } from '../test/harness/ledger.ts'
import type { SignupAnswer } from '../test/harness/load.ts'
import { ca } from '../test/harness/tls.ts'
import type { Figure } from './scenario.ts'

/** Not that of the attackers, so that what is counted for each address keeps the two apart. */
const ADDRESS = '127.0.0.99'
/** Milliseconds between two requests. */
const PACE = 50
/** Milliseconds; an answer that comes later is none. */
const PATIENCE = 10_000

export interface HonestClient {
  /** Ends it, and says what it was told. */
  stop(): Promise<Told>
}

export interface Told {
  readonly figures: readonly Figure[]
  /** Why it was not served, if so: a sentence. */
  readonly broken: readonly string[]
}

/**
 * Signs up somebody new, and asks how the service is, in turn, each time on a connection of its own. Every one of them must
 * be answered with 200.
 */
export function honestClient(baseUrl: string, ledger: Ledger): HonestClient {
  const waits: number[] = []
  const failures = new Map<string, number>()
  const pending = new Set<Promise<void>>()
  let isOver = false

  const request = async (i: number) => {
    const sent = performance.now()
    const email = i % 2 === 0 ? `honest-${i}@example.com` : null
    const { answer, error } = await ask(baseUrl, email)
    waits.push(performance.now() - sent)
    if (email !== null) ledger.note(email, answer)
    if (answer?.status === 200) return
    const what = `${email === null ? 'health' : 'a signup'}: ${error ?? answer?.status}`
    failures.set(what, (failures.get(what) ?? 0) + 1)
  }
  const asking = (async () => {
    for (let i = 0; !isOver; i++) {
      const asked = request(i)
      pending.add(asked)
      asked.finally(() => pending.delete(asked))
      await wait(PACE)
    }
    await Promise.all(pending)
  })()

  return {
    async stop() {
      isOver = true
      await asking
      waits.sort((a, b) => a - b)
      const failed = [...failures.values()].reduce((sum, count) => sum + count, 0)
      const reasons = [...failures].map(([what, count]) => `${count} × ${what}`).join(', ')
      return {
        figures: [
          { name: 'requests of the honest client', value: waits.length },
          { name: 'of them not served', value: failed, most: 0 },
          { name: 'its wait, p99', value: waits[Math.floor(waits.length * 0.99)] ?? Number.NaN, unit: 'ms' },
          { name: 'its longest wait', value: waits.at(-1) ?? Number.NaN, unit: 'ms' },
        ],
        broken: failed === 0 ? [] : [`the honest client was not served ${failed} of ${waits.length} times: ${reasons}`],
      }
    },
  }
}

interface Outcome {
  /** Null: there was no whole answer. */
  readonly answer: SignupAnswer | null
  /** Why there was none. */
  readonly error?: string
}

/** A signup, or with null a question for health. Without an agent, on a connection of its own. */
export function ask(baseUrl: string, email: string | null, agent: Agent | false = false): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>()
  const send = baseUrl.startsWith('https:') ? requestHttps : requestHttp
  const asked = send(`${baseUrl}/api/${email === null ? 'health' : 'waitlist'}`, {
    method: email === null ? 'GET' : 'POST',
    headers: email === null ? {} : { 'content-type': 'application/json' },
    agent,
    localAddress: ADDRESS,
    ca,
    signal: AbortSignal.timeout(PATIENCE),
  })
  const fail = ({ name, code, message }: NodeJS.ErrnoException) => {
    const error = name === 'AbortError' ? `no answer for ${PATIENCE} ms` : (code ?? message)
    resolve({ answer: null, error })
  }
  asked.on('error', fail).on('response', response => {
    let text = ''
    response.setEncoding('utf8').on('error', fail)
    response.on('data', chunk => {
      text += chunk
    })
    response.on('end', () => {
      const { alreadyExisted } = JSON.parse(text)
      resolve({ answer: { status: response.statusCode!, alreadyExisted } })
    })
  })
  asked.end(email === null ? undefined : JSON.stringify({ name: 'Honest Client', email }))
  return promise
}
