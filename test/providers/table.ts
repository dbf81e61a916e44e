/** The table of a vendor: what is asked of us, the requests that we make, their canned answers, and what we make of them. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { readConfig } from '../../src/config/load.ts'
import type { Provider } from '../../src/delivery/destination.ts'
import { openProvider } from '../../src/providers/open.ts'
import { type Contact, eventId } from '../../src/signup/contact.ts'
import { type Received, type Said, startReceiver } from '../harness/receiver.ts'

export const contactOf = (email: string, more: Partial<Contact> = {}): Contact => ({
  id: '01981d4f-3c00-7c4e-9d0a-3f1c2b4d5e6f',
  state: 'pending',
  name: 'Ada King Lovelace',
  email,
  createdAt: new Date('2026-03-04T05:06:07Z'),
  ...more,
})
export const ada = contactOf('ada@example.com')
export const EVENT = eventId(ada, 'joined')

const never = new AbortController().signal

/** What is asked of us. */
type Act = (provider: Provider) => Promise<unknown>
export const create: Act = provider => provider.create(ada, false, never)
/** After an attempt that may have created the contact. */
export const createInDoubt: Act = provider => provider.create(ada, true, never)
export const createFor =
  (more: Partial<Contact>): Act =>
  provider =>
    provider.create({ ...ada, ...more }, false, never)
export const notify: Act = provider => notifyAbout({})(provider)
export const notifyAbout =
  (more: Partial<Contact>, code?: string): Act =>
  ({ automation }) => {
    const at = new Date()
    const event = { kind: 'joined', id: EVENT, name: 'waitlist.joined', at, code } as const
    return automation!.deliver({ ...event, contact: { ...ada, ...more } }, never)
  }
export const removeFor =
  (email: string): Act =>
  provider =>
    provider.remove(email, never)
export const remove = removeFor(ada.email)
export const check: Act = provider => provider.check(never)

/** A request of ours, as "GET /path?query", with its body if that matters, and how it is answered. */
type Exchange = readonly [request: string, body: unknown, answer: Said] | readonly [request: string, answer: Said]

/** `outcome`: what our client says, or the `is` of it; a pattern: of why it is our mistake. */
type Row = readonly [what: string, act: Act, exchanges: readonly Exchange[], outcome: string | RegExp | object | null]

interface Frozen {
  /** The name on npm, and the version. */
  readonly client: string
  readonly vendor: string
  readonly request: { readonly method: string; readonly path: string; readonly headers: Record<string, string> }
}

/** What official clients sent, a line for each request. */
const frozen = readFileSync(new URL('../fixtures/vendor-clients.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map(line => JSON.parse(line) as Frozen)

/** Each row is a test. In the end, the requests of the vendor's own client must be among ours. */
export function vendorTable(
  vendor: string,
  settings: (url: string) => Record<string, string>,
  rows: readonly Row[],
  /** Rows of other settings. */
  more: readonly (readonly [set: Readonly<Record<string, string>>, ...rows: readonly Row[]])[] = [],
): void {
  const sent: Received[] = []

  function row([what, act, exchanges, outcome]: Row, set: Readonly<Record<string, string>> = {}): void {
    test(what, async t => {
      const answers = exchanges.map(exchange => exchange.at(-1) as Said)
      const server = await startReceiver(t, () => answers.shift() ?? assert.fail('a call that the table does not have'))
      const { provider } = await readConfig({ PROVIDER: vendor, ...settings(server.url), ...set })
      const said = await act(openProvider(provider!))
      assert.deepEqual(
        server.received.map(callOf),
        exchanges.map(([request]) => request),
      )
      for (const [i, exchange] of exchanges.entries()) {
        if (exchange.length === 3) assert.deepEqual(server.received[i]!.json, exchange[1])
      }
      sent.push(...server.received)
      const { is, why } = Object(said)
      assert.doesNotMatch(String(why), /@|example\.com|of-the-test/)
      if (typeof outcome === 'string') return assert.equal(is, outcome, why)
      if (!(outcome instanceof RegExp)) return assert.deepEqual(said, outcome)
      assert.equal(is, 'misconfigured')
      assert.match(why, outcome)
    })
  }

  describe(vendor, () => {
    for (const each of rows) row(each)
    for (const [set, ...others] of more) for (const each of others) row(each, set)

    const theirs = frozen.filter(each => each.vendor === vendor)
    for (const { client, request } of theirs) {
      test(`${request.method} ${request.path} is sent as ${client} sends it`, () => {
        const names = Object.keys(request.headers)
        const ours = sent.map(each => wireOf(each, names)).filter(({ path }) => path === request.path)
        assert.ok(
          ours.some(each => isDeepStrictEqual(each, request)),
          `${JSON.stringify(request)}\nis not among\n${ours.map(each => JSON.stringify(each)).join('\n')}`,
        )
      })
    }
  })
}

function callOf({ method, path, query }: Received): string {
  const search = Object.entries(query).map(([name, value]) => `${name}=${value}`)
  return `${method} ${path}${search.length === 0 ? '' : `?${search.join('&')}`}`
}

/** A request without what identifies a client. */
function wireOf({ method, path, query, headers: all, json }: Received, names: readonly string[]) {
  const headers = Object.fromEntries(names.map(name => [name, all[name]?.replace(/;\s*charset=utf-8$/i, '')]))
  const wire = { method, path, ...(Object.keys(query).length > 0 && { query }), headers, json: json ?? undefined }
  return JSON.parse(JSON.stringify(wire))
}
