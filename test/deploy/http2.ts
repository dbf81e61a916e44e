/** A visitor that speaks HTTP/2 to the proxy. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import type { TestContext } from 'node:test'
import { ca, headersOf, json, type Received } from '../harness/tls.ts'

export async function http2Session(t: TestContext, baseUrl: string): Promise<ClientHttp2Session> {
  const session = connect(baseUrl, { ca })
  session.on('error', () => {})
  t.after(() => session.destroy())
  await once(session, 'connect')
  return session
}

/** One request on a session. */
export async function http2(
  session: ClientHttp2Session,
  path: string,
  fields: OutgoingHttpHeaders = {},
  body?: string,
): Promise<Received> {
  const stream = session.request({ ':path': path, ...fields }, { endStream: body === undefined })
  stream.setEncoding('utf8').on('error', () => {})
  if (body !== undefined) stream.end(body)
  const [{ ':status': status, ...headers }] = await once(stream, 'response')
  let text = ''
  for await (const chunk of stream) text += chunk
  const answer = { status: Number(status), headers: headersOf(headers), body: text }
  if (answer.status >= 400) assert.deepEqual(Object.keys(JSON.parse(text)), ['error'])
  return answer
}

export const post = { ':method': 'POST', ...json }
