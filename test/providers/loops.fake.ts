import type { Received, Said } from '../harness/receiver.ts'

const KEY = 'loops-key-of-the-test'

export const loopsSettings = (url: string) => ({ LOOPS_API_KEY: KEY, LOOPS_BASE_URL: `${url}/api` })

export type LoopsFake = ReturnType<typeof loopsFake>

/** A Loops that keeps contacts, and counts the events that it does not recognise as repetitions. */
export function loopsFake() {
  const contacts = new Map<string, { readonly id: string }>()
  const usedKeys = new Set<string>()
  const starts = new Map<string, number>()
  const add = (email: string) => contacts.set(email, { id: `cll${contacts.size + 1}` }).get(email)!
  const ok = (more: object = {}): Said => ({ status: 200, body: { success: true, ...more } })
  const failed = (status: number, message: string): Said => ({ status, body: { success: false, message } })

  function send(email: string, key: string): Said {
    if (usedKeys.has(key)) return failed(409, 'Idempotency key was used.')
    usedKeys.add(key)
    starts.set(email, (starts.get(email) ?? 0) + 1)
    return ok()
  }

  function answer({ method, path, headers, json }: Received): Said {
    if (headers.authorization !== `Bearer ${KEY}`) return { status: 401, body: { error: 'Invalid API key' } }
    switch (`${method} ${path}`) {
      case 'GET /api/v1/api-key':
        return ok({ teamName: 'Example' })
      case 'POST /api/v1/contacts/create':
        if (json.email.startsWith('refused')) return failed(400, 'Invalid email address.')
        return contacts.has(json.email) ? failed(409, 'Email is already on list.') : ok(add(json.email))
      case 'POST /api/v1/contacts/delete':
        return contacts.delete(json.email) ? ok() : failed(404, 'Contact not found.')
      case 'POST /api/v1/events/send':
        return send(json.email, headers['idempotency-key']!)
      default:
        throw new Error(`${method} ${path} is none of its calls`)
    }
  }

  return {
    answer,
    /** Puts a contact there, as if the owner had. */
    had: (email: string) => void add(email),
    kept: (email: string): unknown => contacts.get(email),
    count: (email: string) => (contacts.has(email) ? 1 : 0),
    starts: (email: string) => starts.get(email) ?? 0,
  }
}
