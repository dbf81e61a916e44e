/**
 * The baseline: what Node's HTTP server costs by itself. It parses the JSON of a request, sends the head and body recorded
 * from the service, and does nothing else.
 */

import { createServer, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Answer } from './record.ts'

interface Prepared {
  readonly status: number
  readonly fields: OutgoingHttpHeaders
  /** Text, which Node writes together with the head; that is faster than bytes. */
  readonly body: string
}

const prepare = ({ status, fields, body }: Answer): Prepared => ({
  status,
  fields: Object.fromEntries(Array.from({ length: fields.length / 2 }, (_, i) => [fields[2 * i]!, fields[2 * i + 1]!])),
  body,
})

let answer: Prepared

const send = (response: ServerResponse) => response.writeHead(answer.status, answer.fields).end(answer.body)

const server = createServer((request, response) => {
  if (request.method === 'GET') return void send(response)
  let body = ''
  request.on('data', chunk => {
    body += chunk
  })
  request.on('end', () => {
    JSON.parse(body)
    send(response)
  })
})

process.on('message', (told: Answer) => {
  answer = prepare(told)
  server.keepAliveTimeout = told.keepAlive * 1000
  process.send?.('ready')
})
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
