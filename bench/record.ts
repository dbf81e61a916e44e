import { Agent, type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { type Answer, type Answers, FRESH, type RequestShape } from './job.ts'

/** Node writes these itself, in the service as in the bare server. */
const NODES_OWN = new Set(['date', 'connection', 'keep-alive'])

interface Received {
  readonly status: number
  readonly rawHeaders: readonly string[]
  readonly body: string
}

async function ask(port: number, shape: RequestShape): Promise<Received> {
  const agent = new Agent({ keepAlive: true })
  const { method, path, body } = shape
  const headers = body === undefined ? {} : { 'content-type': 'application/json' }
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const sent = request({ host: '127.0.0.1', port, method, path, headers, agent }, resolve).on('error', reject)
      sent.end(body?.replace(FRESH, `recorded-${Math.floor(Math.random() * 1e9)}`))
    })
    return { status: response.statusCode!, rawHeaders: response.rawHeaders, body: await text(response) }
  } finally {
    agent.destroy()
  }
}

/** Asks the service once and keeps its answer, for the bare server to give. */
export async function record(port: number, shape: RequestShape): Promise<Answer> {
  const { status, rawHeaders, body } = await ask(port, shape)
  const keepAlive = /timeout=(\d+)/.exec(rawHeaders[rawHeaders.indexOf('Keep-Alive') + 1] ?? '')?.[1]
  return {
    status,
    fields: rawHeaders.filter((_, i) => !NODES_OWN.has(rawHeaders[i - (i % 2)]!.toLowerCase())),
    body,
    keepAlive: Number(keepAlive),
  }
}

/** Makes sure that the bare server sends what was recorded, in the same order and with the same fields of Node. */
export async function requireSame(port: number, shape: RequestShape, recorded: Answers): Promise<void> {
  const again = await record(port, shape)
  const expected = recorded[shape.method]
  if (JSON.stringify(again) !== JSON.stringify(expected)) {
    throw new Error(`the bare server answers otherwise:\n${JSON.stringify(again)}\n${JSON.stringify(expected)}`)
  }
}
