import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { PLACE, type RequestShape } from './load.ts'

/** An answer of a server, without the fields that Node writes itself. */
export interface Answer {
  readonly status: number
  readonly message: string
  /** Name, value, name, value. */
  readonly fields: readonly string[]
  readonly body: string
  /** Seconds; Node writes it into the field Keep-Alive. */
  readonly keepAlive: number
}

/** Node writes these itself, in the service as in the bare server. */
const NODES_OWN = new Set(['date', 'connection', 'keep-alive'])

/** Sends one request and keeps the answer. */
export async function record(port: number, { method, path, body }: RequestShape): Promise<Answer> {
  const agent = new Agent({ keepAlive: true })
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path, headers, agent }, resolve).on('error', reject)
      sent.end(body?.replace(PLACE, `recorded-${Math.floor(Math.random() * 1e9)}`))
    })
    const { statusCode, statusMessage, rawHeaders } = response
    const keepAlive = /timeout=(\d+)/.exec(rawHeaders[rawHeaders.indexOf('Keep-Alive') + 1] ?? '')?.[1]
    return {
      status: statusCode!,
      message: statusMessage!,
      fields: rawHeaders.filter((_, i) => !NODES_OWN.has(rawHeaders[i - (i % 2)]!.toLowerCase())),
      body: await text(response),
      keepAlive: Number(keepAlive),
    }
  } finally {
    agent.destroy()
  }
}

/** Makes sure that the bare server sends what was recorded: status line, fields in their order, body. */
export async function requireSame(port: number, shape: RequestShape, recorded: Answer): Promise<void> {
  const again = await record(port, shape)
  if (JSON.stringify(again) !== JSON.stringify(recorded)) {
    throw new Error(`the bare server answers otherwise:\n${JSON.stringify(again)}\n${JSON.stringify(recorded)}`)
  }
}
