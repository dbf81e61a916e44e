/**
 * An email provider as far as the service can tell (Mailchimp, whose documented rate is among the highest): it answers
 * at once, or never.
 */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

let hangs = false
let contacts = 0

const server = createServer((request, response) => {
  request.on('data', () => {})
  request.on('end', () => {
    if (hangs) return
    if (request.url?.endsWith('/events')) return void response.writeHead(204).end()
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ contact_id: `${++contacts}` }))
  })
})

process.on('message', (message: { readonly hangs: boolean }) => {
  hangs = message.hangs
  process.send?.('ready')
})
process.on('disconnect', () => process.exit())
process.on('SIGTERM', () => process.exit())

server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
