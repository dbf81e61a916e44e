/**
 * The baseline: what Node's HTTP server costs by itself. The same routes and the same answers, byte for byte, without
 * any logic. It is told what to answer, because a POST is answered in four ways and it must not look into the body.
 */

import { createServer, type OutgoingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Answer, Answers } from './job.ts'

interface Prepared {
  readonly status: number
  readonly fields: OutgoingHttpHeaders
  /** Text: Node writes it together with the head, which is quicker than bytes. */
  readonly body: string
}

const prepare = ({ status, fields, body }: Answer): Prepared => ({
  status,
  fields: Object.fromEntries(Array.from({ length: fields.length / 2 }, (_, i) => [fields[2 * i]!, fields[2 * i + 1]!])),
  body,
})

let get: Prepared
let post: Prepared

const send = (response: ServerResponse, { status, fields, body }: Prepared) =>
  response.writeHead(status, fields).end(body)

const server = createServer((request, response) => {
  if (request.method === 'GET' && request.url === '/api/health') return void send(response, get)
  if (request.method === 'POST' && request.url === '/api/waitlist') {
    request.on('data', () => {})
    request.on('end', () => send(response, post))
    return
  }
  response.writeHead(404).end()
})

process.on('message', (answers: Answers) => {
  get = prepare(answers.GET)
  post = prepare(answers.POST)
  server.keepAliveTimeout = answers.GET.keepAlive * 1000
  process.send?.('ready')
})
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
