/** What the fakes of vendors have in common: an API whose calls are documented, and a list of contacts. */
import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Asked, Said } from './vendor.ts'

type Members = Readonly<Record<string, object | boolean>>

/** The words in which documents describe bodies, as JSON Schemas. */
export const text = { type: 'string' }
export const whole = { type: 'integer' }
export const number = { type: 'number' }
export const yesOrNo = { type: 'boolean' }
export const listOf = (items: object) => ({ type: 'array', items })
/** An object with these members, of which `optional` may be absent; it may have others. */
export const object = (required: Members = {}, optional: Members = {}) => ({
  type: 'object',
  required: Object.keys(required),
  properties: { ...required, ...optional },
})
/** The same, and no other members. */
export const exactly = (required: Members, optional: Members = {}) => ({
  ...object(required, optional),
  additionalProperties: false,
})

/** A request, with the parts of its path that the route names. */
export type Routed = Asked & { readonly at: Readonly<Record<string, string>> }

/** One call that we make: what the vendor's document says of it, and what the fake does. */
export interface Route {
  /** The body that it takes; absent, where there are answers: none. */
  readonly takes?: object
  /** The bodies that it answers with, by status; null: none or any. Absent: the vendor has no machine-readable document. */
  readonly answers?: Readonly<Record<number, object | null>>
  does(asked: Routed): Said
}

export interface Api {
  /** By method and path, such as "GET /people/{id}". */
  readonly routes: Readonly<Record<string, Route>>
  /** What any call may be answered with. */
  readonly always?: Readonly<Record<number, object | null>>
  /** The answer to a call that goes no further, such as one with a wrong key. */
  refuses?(asked: Routed): Said | undefined
}

/** Answers as the routes say, and holds each request and each answer against the vendor's document. */
export function vendorApi({ routes, always = {}, refuses }: Api): (asked: Asked) => Said {
  return asked => {
    const where = `${asked.method} ${asked.path}`
    const called = Object.entries(routes).map(([name, route]) => ({ route, at: matched(name, asked) }))
    const found = called.find(({ at }) => at !== null)
    assert.ok(found !== undefined, `${where} is not documented`)
    const { route, at } = found
    const routed = { ...asked, at: at! }
    const said = refuses?.(routed) ?? route.does(routed)
    if (route.takes !== undefined) assertValid(route.takes, asked.json, where)
    if (route.answers === undefined) return said
    if (route.takes === undefined) assert.equal(asked.json, undefined, `${where} takes no body`)
    const answer = { ...always, ...route.answers }[said.status]
    assert.ok(answer !== undefined, `${where} is not documented to answer with ${said.status}`)
    if (answer !== null) assertValid(answer, said.body, `the answer of ${where} (${said.status})`)
    return said
  }
}

/** The parts of the path that the route names; null: it is another route. */
function matched(name: string, { method, segments }: Asked): Readonly<Record<string, string>> | null {
  const [wanted, path = ''] = name.split(' ')
  const parts = path.split('/')
  if (method !== wanted || parts.length !== segments.length) return null
  const at: Record<string, string> = {}
  for (const [i, part] of parts.entries()) {
    const [, variable] = /^\{(\w+)\}$/.exec(part) ?? []
    if (variable === undefined ? part !== segments[i] : segments[i] === '') return null
    if (variable !== undefined) at[variable] = segments[i]!
  }
  return at
}

const ajv = new Ajv2020({ strict: false, allErrors: true, addUsedSchema: false })

function assertValid(schema: object, value: unknown, what: string): void {
  // Compiled once: Ajv knows a schema that it has seen.
  const validate = ajv.compile(schema)
  assert.ok(validate(value), `${what}: ${JSON.stringify(validate.errors)}`)
}

/** The contacts of a fake by their address, and how often the automation started for each. */
export function contactBook<Kept>() {
  const contacts = new Map<string, Kept>()
  const starts = new Map<string, number>()
  return {
    contacts,
    find: (is: (kept: Kept) => boolean): Kept | undefined => [...contacts.values()].find(is),
    start: (email: string) => void starts.set(email, (starts.get(email) ?? 0) + 1),
    /** What the contract asks of it. */
    facts: {
      kept: (email: string): unknown => contacts.get(email),
      count: (email: string) => (contacts.has(email) ? 1 : 0),
      starts: (email: string) => starts.get(email) ?? 0,
    },
  }
}
