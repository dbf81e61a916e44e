import assert from 'node:assert/strict'
import { type ApiDocument, assertDocumented } from './document.ts'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  /** The body as JSON; undefined when it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape
  readonly json: any
}

export interface Client {
  readonly baseUrl: string
  request(path: string, init?: RequestInit): Promise<Answer>
  /** `POST /api/waitlist` with a JSON body; a string is sent as it is. */
  signUp(body: unknown, headers?: Record<string, string>): Promise<Answer>
}

/** Talks to a service over a real socket. Every answer is held against the service's own OpenAPI document. */
export async function clientOf({ baseUrl }: { readonly baseUrl: string }): Promise<Client> {
  const document = (await (await fetch(`${baseUrl}/api/openapi.json`)).json()) as ApiDocument
  const request = async (path: string, init: RequestInit = {}): Promise<Answer> => {
    const response = await fetch(baseUrl + path, { redirect: 'manual', ...init })
    const { status, headers } = response
    const text = await response.text()
    assertDocumented(document, init.method ?? 'GET', path.split('?')[0]!, { status, headers, body: text })
    const json = headers.get('content-type')?.includes('json') ? JSON.parse(text || 'null') : undefined
    const answer = { status, headers, text, json }
    if (status >= 400 && init.method !== 'HEAD') assertRefused(answer, status)
    return answer
  }
  return {
    baseUrl,
    request,
    signUp: (body, headers = {}) =>
      request('/api/waitlist', {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
  }
}

/** Holds an answer against the one shape that every error has (C-19), and against its sentence where that is known. */
export function assertRefused({ status, headers, text, json }: Answer, expected: number, sentence?: string): void {
  assert.equal(status, expected, text)
  assert.equal(headers.get('content-type'), 'application/json')
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.deepEqual(Object.keys(json), ['error'])
  assert.equal(typeof json.error, 'string')
  assert.notEqual(json.error, '')
  assert.equal(headers.get('set-cookie'), null)
  // A page tells by this field what a person reads in the sentence.
  assert.equal(headers.get('waitlist-signup'), json.error.includes('your signup is saved') ? 'saved' : null)
  if (sentence !== undefined) assert.equal(json.error, sentence)
}
