import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type Asked, type Said, startVendor } from './vendor.ts'

/** What two clients must have in common to mean the same to a vendor. */
export interface Wire {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly json: unknown
}

/** Records what `use` sends, while the server answers as it is told. */
export async function recorded(
  t: Pick<TestContext, 'after'>,
  answer: (asked: Asked) => Said,
  use: (url: string) => Promise<unknown>,
): Promise<readonly Asked[]> {
  const server = await startVendor(t, answer)
  await use(server.url)
  return server.asked
}

/** The same, with the answer to each request. */
export async function exchanged(
  t: Pick<TestContext, 'after'>,
  answer: (asked: Asked) => Said,
  use: (url: string) => Promise<unknown>,
): Promise<readonly (readonly [Asked, Said])[]> {
  const all: [Asked, Said][] = []
  const noted = (asked: Asked): Said => {
    const said = answer(asked)
    all.push([asked, said])
    return said
  }
  await recorded(t, noted, use)
  return all
}

/** The requests of a vendor's official client and ours, equal in everything but fields that identify the client. */
export function assertSameWire(
  ours: readonly Asked[],
  theirs: readonly Asked[],
  headers: readonly string[] = ['content-type', 'authorization'],
): void {
  const wire = ({ method, path, query, headers: all, json }: Asked): Wire => ({
    method,
    path,
    query,
    json,
    headers: Object.fromEntries(headers.map(name => [name, all[name]?.replace(/;\s*charset=utf-8$/i, '')])),
  })
  assert.deepEqual(ours.map(wire), theirs.map(wire))
}

/**
 * Sends every `fetch` of this process to `url` for the time of `use`: for clients whose address is fixed. Tests in one
 * file run one after the other, and each file has a process of its own.
 */
export async function withFetchTo<T>(url: string, use: () => Promise<T>): Promise<T> {
  const original = globalThis.fetch
  globalThis.fetch = (input, init) => {
    const { pathname, search } = new URL(input instanceof Request ? input.url : input)
    return original(url + pathname + search, init)
  }
  try {
    return await use()
  } finally {
    globalThis.fetch = original
  }
}

/**
 * What a vendor's machine-readable contract says of the calls that we make, as JSON Schemas: "POST /subscribers/{id}" with
 * the body it takes (absent: none) and the bodies it answers with, by status (null: none or any).
 */
export type Documented = Readonly<Record<string, DocumentedCall>>
interface DocumentedCall {
  readonly body?: object
  readonly answers: Readonly<Record<number, object | null>>
}

/** Holds a request of ours, and the answer of the fake to it, against the vendor's own contract. */
export function assertDocumented(calls: Documented, asked: Asked, { status, body }: Said): void {
  const { method, path, segments, json } = asked
  const where = `${method} ${path}`
  const found = Object.keys(calls).find(call => {
    const parts = call.replace(`${method} `, '').split('/')
    return (
      call.startsWith(`${method} `) &&
      parts.length === segments.length &&
      parts.every((part, i) => (/^\{\w+\}$/.test(part) ? segments[i] !== '' : part === segments[i]))
    )
  })
  assert.ok(found !== undefined, `${where} is not documented`)
  const { body: taken, answers } = calls[found]!
  if (taken === undefined) assert.equal(json, undefined, `${where} takes no body`)
  else assertValid(taken, json, where)
  const answer = answers[status]
  assert.ok(answer !== undefined, `${where} is not documented to answer with ${status}`)
  if (answer !== null) assertValid(answer, body, `the answer of ${where} (${status})`)
}

/** An answer function each of whose exchanges is held against the vendor's own contract. */
export const documented =
  (calls: Documented, answer: (asked: Asked) => Said) =>
  (asked: Asked): Said => {
    const said = answer(asked)
    assertDocumented(calls, asked, said)
    return said
  }

const ajv = new Ajv2020({ strict: false, allErrors: true, addUsedSchema: false })

function assertValid(schema: object, value: unknown, what: string): void {
  // Compiled once: Ajv knows a schema that it has seen.
  const validate = ajv.compile(schema)
  assert.ok(validate(value), `${what}: ${JSON.stringify(validate.errors)}`)
}
