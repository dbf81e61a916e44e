/** The baseline: what Node's HTTP server costs by itself. It parses the JSON of a request and sends an answer of the service. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

let answer: Answer = { status: 200, headers: {}, body: '' }

const server = createServer(async (request, response) => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  if (chunks.length > 0) JSON.parse(Buffer.concat(chunks).toString())
  response.writeHead(answer.status, answer.headers).end(answer.body)
})
process.on('message', (next: Answer) => {
  answer = next
  process.send?.('ready')
})
process.on('disconnect', () => process.exit())
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
