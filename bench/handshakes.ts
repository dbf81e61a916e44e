/**
 * A client that makes a new TLS connection for each signup, with a full handshake and nothing kept from the last one.
 * A process of its own, so that its own part of the handshake is not counted as the service's.
 */

import { randomBytes } from 'node:crypto'
import { connect } from 'node:tls'

export interface HandshakeJob {
  readonly port: number
  readonly seconds: number
  /** How many connections are made at once. */
  readonly atOnce: number
}

async function once(port: number): Promise<void> {
  const body = JSON.stringify({ name: 'Ada Lovelace', email: `${randomBytes(8).toString('hex')}@example.com` })
  const head = [
    'POST /api/waitlist HTTP/1.1',
    `Host: localhost:${port}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ]
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, minVersion: 'TLSv1.3' })
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  let answer = ''
  socket.setEncoding('latin1')
  for await (const chunk of socket) answer += chunk
  if (!answer.startsWith('HTTP/1.1 200')) throw new Error(`should be answered 200: ${answer.slice(0, 200)}`)
}

async function run({ port, seconds, atOnce }: HandshakeJob): Promise<number> {
  const until = performance.now() + seconds * 1000
  let done = 0
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      do {
        await once(port)
        done++
      } while (performance.now() < until)
    }),
  )
  return done
}

process.on('message', (job: HandshakeJob) => {
  run(job).then(
    done => process.send?.({ done }),
    (error: Error) => process.send?.({ error: error.message }),
  )
})
process.on('disconnect', () => process.exit())
