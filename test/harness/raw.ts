import { connect } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Answer } from './client.ts'
import { ca } from './tls.ts'

/** Sends bytes as they are and returns all that comes back until the other side closes, or for `wait` milliseconds. */
export function exchange(baseUrl: string, bytes: string | Buffer, wait = 120_000): Promise<string> {
  const { protocol, hostname, port } = new URL(baseUrl)
  const target = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) }
  return new Promise((resolve, reject) => {
    const socket = protocol === 'https:' ? connectTls({ ...target, ca }) : connect(target)
    let received = ''
    const finish = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve(received)
    }
    const timer = setTimeout(finish, wait)
    socket.setEncoding('latin1').on('data', chunk => {
      received += chunk
    })
    socket.on('error', error => (received === '' ? reject(error) : finish()))
    socket.on('close', finish)
    socket.write(bytes)
  })
}

export interface RawAnswer extends Answer {
  /** The statuses that came before the final one, such as 100. */
  readonly interim: readonly number[]
}

/** Sends the lines of a head and a body, and reads the one answer. The request should make the server close. */
export async function send(baseUrl: string, head: readonly string[], body: string | Buffer = ''): Promise<RawAnswer> {
  const start = Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1')
  return readAnswer(await exchange(baseUrl, Buffer.concat([start, Buffer.from(body)])))
}

/** Reads all answers that came on one connection, each as long as its Content-Length says. */
export function readAnswers(received: string): readonly RawAnswer[] {
  const answers: RawAnswer[] = []
  for (let rest = received; rest !== ''; ) {
    const head = rest.slice(0, rest.indexOf('\r\n\r\n') + 4)
    const end = head.length + Number(/^content-length: (\d+)\r$/im.exec(head)?.[1])
    if (Number.isNaN(end) || end > rest.length) throw new Error(`no whole answer: ${JSON.stringify(rest)}`)
    answers.push(readAnswer(rest.slice(0, end)))
    rest = rest.slice(end)
  }
  return answers
}

/** Reads one answer of HTTP/1.1, and the interim ones before it (RFC 9110 §15.2). */
export function readAnswer(received: string): RawAnswer {
  const interim: number[] = []
  for (let rest = received; ; ) {
    const end = rest.indexOf('\r\n\r\n')
    const [line = '', ...fields] = rest.slice(0, Math.max(end, 0)).split('\r\n')
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(line)?.[1])
    if (end === -1 || Number.isNaN(status)) throw new Error(`no answer of HTTP/1.1: ${JSON.stringify(received)}`)
    rest = rest.slice(end + 4)
    if (status < 200) {
      interim.push(status)
      continue
    }
    const pairs = fields.map(field => field.split(/: ?(.*)/s, 2) as [string, string])
    const headers = new Headers(pairs)
    const text = Buffer.from(rest, 'latin1').toString()
    const isJson = headers.get('content-type')?.includes('json') && text !== ''
    return { interim, status, headers, text, json: isJson ? JSON.parse(text) : undefined }
  }
}
