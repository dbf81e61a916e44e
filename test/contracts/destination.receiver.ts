import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { listening } from '../harness/listening.ts'
import { type Received, readRequest, type Said } from '../harness/vendor.ts'

export type { Received } from '../harness/vendor.ts'

/** What a receiver does with a request instead of answering it well. */
export type Deed = (response: ServerResponse, received: Received) => void

export interface Receiver {
  readonly url: string
  /** Every request so far, in order of arrival. */
  readonly received: readonly Received[]
  /** Resolves when so many have arrived. */
  arrived(count: number): Promise<void>
}

/** Serves on a free port until the test ends. */
export async function startReceiver(
  test: Pick<TestContext, 'after'>,
  answer: (received: Received) => Said | Deed,
): Promise<Receiver> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const one = await readRequest(request)
    received.push(one)
    const said = answer(one)
    if (typeof said === 'function') said(response, one)
    else say(said)(response, one)
    server.emit('arrived')
  })
  const url = await listening(test, server)
  return {
    url,
    received,
    async arrived(count) {
      while (received.length < count) await once(server, 'arrived')
    },
  }
}

export const say =
  ({ status, body, headers }: Said): Deed =>
  response => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body))
  }

/** Says no and repeats all that it was told, as chatty servers do: after `padding` characters what is most private. */
export const refuse =
  (status: number, headers: Record<string, string> = {}, padding = 0): Deed =>
  (response, received) => {
    const texts = textsIn(received.json)
    const heard = [...texts.filter(isPrivate), ...Object.values(received.headers), ...texts].join(' ')
    const body = { message: '-'.repeat(padding) + heard, errors: [{ detail: received.text }] }
    say({ status, headers, body })(response, received)
  }

/** Whether a text has something of the contact that `joined` makes. */
export const isPrivate = (text: string): boolean => /ada|lovel/i.test(text)

const textsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : Object.values(value ?? {}).flatMap(textsIn)

export const html: Deed = say({
  status: 502,
  headers: { 'content-type': 'text/html' },
  body: '<h1>502 Bad Gateway</h1>',
})
export const never: Deed = () => {}
export const drip: Deed = response => void response.writeHead(200, { 'content-type': 'application/json' }).write('{')
export const reset: Deed = response => void response.destroy()
export const cut: Deed = response => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 })
  response.write('{"ok":', () => response.destroy())
}
export const noise: Deed = response => void response.socket?.end('SSH-2.0-OpenSSH_9.9\r\n')
