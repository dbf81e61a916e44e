/** What the fakes of vendors have in common: an API whose calls are documented, and a list of contacts. */
import assert from 'node:assert/strict'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Received, Said } from './receiver.ts'

type Members = Readonly<Record<string, object | boolean>>

/** The words in which documents describe bodies, as JSON Schemas. */
export const text = { type: 'string' }
export const whole = { type: 'integer' }
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
export type Routed = Received & { readonly at: Readonly<Record<string, string>> }

const ajv = new Ajv2020({ strict: false, allErrors: true, addUsedSchema: false })

/** What the fake does when it gets a call that we make. */
export type Route = (received: Routed) => Said

/** The same, for a body that the vendor's document describes so. */
export const taking =
  (body: object, does: Route): Route =>
  received => {
    // Compiled once: Ajv knows a schema that it has seen.
    const validate = ajv.compile(body)
    assert.ok(validate(received.json), `${received.method} ${received.path}: ${JSON.stringify(validate.errors)}`)
    return does(received)
  }

interface Api {
  /** By method and path, such as "GET /people/{id}". */
  readonly routes: Readonly<Record<string, Route>>
  /** The answer to a call that goes no further, such as one with a wrong key. */
  refuses?(received: Routed): Said | undefined
}

/** Answers as the routes say. There are no others. */
export function vendorApi({ routes, refuses }: Api): (received: Received) => Said {
  return received => {
    for (const [name, route] of Object.entries(routes)) {
      const at = matched(name, received)
      if (at !== null) return refuses?.({ ...received, at }) ?? route({ ...received, at })
    }
    assert.fail(`${received.method} ${received.path} is not documented`)
  }
}

/** The parts of the path that the route names; null: it is another route. */
function matched(name: string, { method, segments }: Received): Readonly<Record<string, string>> | null {
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
