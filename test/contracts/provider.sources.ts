import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { allVendors } from '../../src/providers/list.ts'
import { type Source, sourceParameters } from '../../src/signup/contact.ts'
import { type Received, startReceiver } from '../harness/receiver.ts'
import { contactOf, eventOf, opened, type VendorUnderTest } from './provider.ts'

const vendors = await allVendors()

/** Where a parameter is in a body; absent: it is not sent there. */
export interface SourceTold {
  readonly contact?: (parameter: string) => string
  readonly event?: (parameter: string) => string
}

export const within = (path: string) => (parameter: string) => `${path}.${parameter}`

/** As long as they may be. */
const source = Object.fromEntries(
  sourceParameters.map(name => [name, name.padEnd(100, ' 🚀').toWellFormed()]),
) as Required<Source>
const never = new AbortController().signal
const at = new Date()

const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8')
const [, part = ''] = page.split('\n## Where a signup came from\n')
const rows = [...part.split('\n## ')[0]!.matchAll(/^\| (.*?) \| (.*?) \| (.*?) \|$/gm)].slice(1)

/** Where these values are in a body, by the value. */
function* places(body: unknown, path = ''): Generator<[value: string, path: string]> {
  if (typeof body === 'string') yield [body, path]
  if (typeof body !== 'object' || body === null) return
  for (const [key, member] of Object.entries(body)) yield* places(member, path === '' ? key : `${path}.${key}`)
}

/** Without the source, and without what is empty then. */
function bare(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body
  const members = Object.entries(body)
    .filter(([name]) => !Object.hasOwn(source, name))
    .map(([name, member]) => [name, bare(member)] as const)
    .filter(([, member]) => member !== undefined)
  return members.length === 0 ? undefined : Object.fromEntries(members)
}

const without = (requests: readonly Received[]): unknown =>
  requests.map(({ method, path, query, json }) => [method, path, query, JSON.stringify(bare(json))])

/** What the vendor is told of where a signup came from, held against the table of docs/providers.md. */
export function sourcesContract(under: VendorUnderTest): void {
  const { contact, event } = under.sources ?? {}
  const ada = contactOf('ada@example.com', { createdAt: at })

  /** The requests of a creation and of the start of the automation. */
  async function sent(t: TestContext, known: Source | undefined) {
    const contact = known === undefined ? ada : { ...ada, source: known }
    const { url, received } = await startReceiver(t, under.fake().answer)
    const provider = await opened(t, under, under.settings(url))
    assert.equal((await provider.createContact(contact, false, never)).is, 'created')
    await provider.automation?.deliver({ ...eventOf({ ...contact, state: 'listed' }), at }, never)
    return received
  }

  test('where a signup came from is sent where docs/providers.md says, and nothing else changes', async t => {
    const [, , inContact = '–', inEvent = '–'] = rows.find(([, name]) => name === vendors[under.vendor].title) ?? []
    assert.deepEqual([inContact !== '–', inEvent !== '–'], [contact !== undefined, event !== undefined])
    const requests = await sent(t, source)
    const found = requests.flatMap(({ json }) => [...places(json)])
    for (const name of sourceParameters) {
      const at = found.filter(([value]) => value === source[name]).map(([, path]) => path)
      assert.deepEqual(
        at,
        [contact, event].flatMap(where => where?.(name) ?? []),
        name,
      )
    }
    const texts = JSON.stringify(requests.map(({ path, query, headers }) => [path, query, headers]))
    assert.ok(!texts.includes('🚀'), 'it is in bodies alone')
    assert.deepEqual(without(requests), without(await sent(t, undefined)))
  })
}
