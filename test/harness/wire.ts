import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { type Received, type Said, startReceiver } from './receiver.ts'

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
  answer: (asked: Received) => Said,
  use: (url: string) => Promise<unknown>,
): Promise<readonly Received[]> {
  const server = await startReceiver(t, answer)
  await use(server.url)
  return server.received
}

/** The requests of a vendor's official client and ours, equal in everything but fields that identify the client. */
export function assertSameWire(
  ours: readonly Received[],
  theirs: readonly Received[],
  headers: readonly string[] = ['content-type', 'authorization'],
): void {
  const wire = ({ method, path, query, headers: all, json }: Received): Wire => ({
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
