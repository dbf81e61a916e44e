/** The table of a vendor: for each call of ours what the vendor receives and answers, and what our client makes of it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import type { Provider } from '../../src/waitlist/ports/provider.ts'
import { contactOf, eventOf, opened, type VendorFake, type VendorUnderTest } from '../contracts/provider.ts'
import { type Received, type Said, startReceiver } from '../harness/receiver.ts'

type Settings = Readonly<Record<string, string>>

export const never = new AbortController().signal
export const ada = contactOf('ada@example.com')

/** What is asked of our client. */
export type Act = (provider: Provider) => Promise<unknown>
export const create =
  (contact = ada): Act =>
  provider =>
    provider.createContact(contact, false, never)
/** A creation in doubt. */
export const createAgain =
  (contact = ada): Act =>
  provider =>
    provider.createContact(contact, true, never)
export const start =
  (contact = ada): Act =>
  ({ automation }) =>
    automation!.deliver(eventOf(contact), never)
export const remove =
  (email = ada.email): Act =>
  provider =>
    provider.remove(email, never)
/** Milliseconds for which the vendor asks to wait. */
export const waitAfter =
  (act: Act): Act =>
  async provider =>
    Object(await act(provider)).retryAfter
export const check: Act = provider => provider.check(never)

/** What our client says: its `is`, all of it, or, as a pattern, why it is our mistake. */
type Outcome = string | number | boolean | object | null
/** A request: method, path and query, and the body where it matters. */
type Sent = string | readonly [call: string, json: unknown]
/** An act, what our client says, and, if any is given, all requests that it makes for it. */
export type Call = readonly [act: Act, outcome: Outcome, ...sent: readonly Sent[]]

interface Row<Fake> {
  readonly set?: Settings
  /** An address, or several, that the vendor had before. */
  readonly had?: string | readonly string[]
  /** Answers in the fake's place: to everything, or to what it chooses. */
  readonly says?: Said | ((asked: Received) => Said | undefined)
  readonly calls: readonly Call[]
  /** Some of what the vendor keeps of her in the end. */
  readonly keeps?: object
  /** Whether she is on all lists in the end. */
  readonly joined?: boolean
  afterwards?(fake: Fake): void
}

/** Acts, after which our requests must be those that the vendor's own client was recorded with under the same title. */
interface Same<Fake> extends Pick<Row<Fake>, 'set' | 'had'> {
  readonly ours: readonly Call[]
  /** Those that are compared. */
  readonly headers?: readonly string[]
}

interface Recorded {
  /** The name on npm, and the version. */
  readonly client: string
  readonly vendor: string
  readonly test: string
  readonly request: object
}

/** What official clients sent, a line for each request. */
const recorded = readFileSync(new URL('../fixtures/vendor-clients.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map(line => JSON.parse(line) as Recorded)

/** An answer, and what our client makes of it. */
type Answered = readonly [said: Said, outcome: Outcome]

export function vendorTable<Fake extends VendorFake>(under: Omit<VendorUnderTest, 'fake'> & { fake(): Fake }) {
  /** Starts the fake, and the provider in front of it. */
  async function started(t: TestContext, set: Settings = {}, says?: Row<Fake>['says']) {
    const fake = under.fake()
    const instead = typeof says === 'function' ? says : () => says
    const server = await startReceiver(t, asked => instead(asked) ?? fake.answer(asked))
    const provider = await opened(t, under, { ...under.settings(server.url), ...set })
    return { fake, server, provider }
  }

  async function hold(
    t: TestContext,
    { set, had = [], says, calls, keeps, joined, afterwards }: Row<Fake>,
  ): Promise<void> {
    const { fake, server, provider } = await started(t, set, says)
    for (const email of [had].flat()) fake.had(email)
    for (const [act, outcome, ...sent] of calls) {
      const before = server.received.length
      assertOutcome(await act(provider), outcome)
      if (sent.length > 0) assertSent(server.received.slice(before), sent)
    }
    if (keeps !== undefined) assert.partialDeepStrictEqual(fake.kept(ada.email), keeps)
    if (joined !== undefined) assert.equal(fake.joined!(ada.email), joined)
    afterwards?.(fake)
  }

  return {
    started,

    /** Each row is a test of its own. */
    rows(table: Readonly<Record<string, Row<Fake>>>): void {
      for (const [title, row] of Object.entries(table)) test(title, t => hold(t, row))
    },

    /** What each answer is taken for; `to`: those requests alone get it that have this method. */
    answers(what: string, act: Act, table: readonly Answered[], more: Partial<Row<Fake>> & { to?: string } = {}): void {
      const { to, ...row } = more
      for (const [said, outcome] of table) {
        const is = outcome instanceof RegExp || typeof outcome === 'string' ? String(outcome) : JSON.stringify(outcome)
        const says = (asked: Received) => (to === undefined || asked.method === to ? said : undefined)
        test(`${what} that is answered with ${JSON.stringify(said)} is ${is}`, t =>
          hold(t, { ...row, says, calls: [[act, outcome]] }))
      }
    },

    /** What the check finds wrong with settings that name what is not there, or is of no use. */
    missing(table: readonly (readonly [set: Settings, why: RegExp])[]): void {
      for (const [set, why] of table) {
        test(`the check says what is not there of ${JSON.stringify(set)}`, t => hold(t, { set, calls: [[check, why]] }))
      }
    },

    sameRequests(title: string, { set, had = [], ours, headers }: Same<Fake>): void {
      test(`our requests are those of the vendor's own client: ${title}`, async t => {
        const { fake, server, provider } = await started(t, set)
        for (const email of [had].flat()) fake.had(email)
        for (const [act, outcome] of ours) assertOutcome(await act(provider), outcome)
        const theirs = recorded.filter(({ vendor, test }) => vendor === under.vendor && test === title)
        assert.ok(theirs.length > 0, title)
        assert.deepEqual(
          wireOf(server.received, headers),
          theirs.map(({ request }) => request),
        )
      })
    },

    /** Settings that are each allowed, but not together; null: they are. */
    contradictions(table: readonly (readonly [change: Settings, mistake: RegExp | null])[]): void {
      for (const [change, mistake] of table) {
        test(`the settings ${JSON.stringify(change)} are ${mistake === null ? 'allowed' : 'refused at the start'}`, async () => {
          const env = { ...under.settings('https://api.example.com'), ...change }
          const result = await readConfig({ PROVIDER: under.vendor, ...env })
          if (mistake === null) return assert.ok('config' in result, JSON.stringify(result))
          assert.ok('mistakes' in result)
          assert.match(result.mistakes.join(), mistake)
        })
      }
    },
  }
}

function assertOutcome(said: unknown, outcome: Outcome): void {
  const shown = JSON.stringify(said)
  if (outcome instanceof RegExp) {
    const { is, why } = Object(said)
    assert.equal(is, 'misconfigured', shown)
    assert.match(why, outcome)
  } else if (typeof outcome === 'string') assert.equal(Object(said).is, outcome, shown)
  else assert.deepEqual(said, outcome)
}

function assertSent(asked: readonly Received[], sent: readonly Sent[]): void {
  const expected = sent.map(one => (typeof one === 'string' ? [one] : one))
  const calls = asked.map(one => callOf(one))
  assert.deepEqual(
    calls,
    expected.map(([call]) => call),
  )
  for (const [i, [, json]] of expected.entries()) {
    if (expected[i]!.length > 1) assert.deepEqual(asked[i]!.json, json)
  }
}

export function callOf({ method, path, query }: Received): string {
  const asked = Object.entries(query).map(([name, value]) => `${name}=${value}`)
  return `${method} ${path}${asked.length === 0 ? '' : `?${asked.join('&')}`}`
}

/** Requests without what identifies a client, as JSON has them. */
function wireOf(received: readonly Received[], names: readonly string[] = ['content-type', 'authorization']): unknown {
  const wire = received.map(({ method, path, query, headers: all, json }) => {
    const headers = Object.fromEntries(names.map(name => [name, all[name]?.replace(/;\s*charset=utf-8$/i, '')]))
    return { method, path, ...(Object.keys(query).length > 0 && { query }), headers, json: json ?? undefined }
  })
  return JSON.parse(JSON.stringify(wire))
}
