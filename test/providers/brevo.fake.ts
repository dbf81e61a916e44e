import type { VendorFake } from '../contracts/provider.ts'
import type { Received, Said } from '../harness/receiver.ts'
import { contactBook, vendorApi } from '../harness/vendor-api.ts'

const KEY = 'xkeysib-of-the-test'
const LISTS = [2, 5]
const ATTRIBUTES = ['FIRSTNAME', 'LASTNAME', 'VORNAME', 'NACHNAME']
/** By number: active and for double opt-in; for something else; not active. */
const TEMPLATES: Readonly<Record<string, object>> = {
  7: { isActive: true, doiTemplate: true },
  8: { isActive: true, doiTemplate: false },
  9: { isActive: false, doiTemplate: true },
}

export const brevoSettings = (url: string) => ({ BREVO_API_KEY: KEY, BREVO_LIST_IDS: '2, 5', BREVO_BASE_URL: url })
export const brevoDoubleOptIn = {
  BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: '7',
  BREVO_DOUBLE_OPT_IN_REDIRECT_URL: 'https://example.com/welcome?from=waitlist',
}

export interface BrevoFake extends VendorFake {
  /** How many mails asked this address to confirm. */
  asked(email: string): number
  /** The contact follows the link of the mail. */
  confirm(email: string): void
  unsubscribe(email: string): void
}

interface Kept {
  readonly id: number
  readonly email: string
  readonly listIds: readonly number[]
  readonly attributes: Readonly<Record<string, unknown>>
  readonly createdAt: string
  readonly modifiedAt: string
  readonly emailBlacklisted: boolean
}

/*
 * Facts of Brevo's own OpenAPI documents (Contact Management 1.0.0, and the types of its client 6.0.3 for the others), as far
 * as we send or read it. 401 is in them for events alone, but is the same everywhere; 204 of a double opt-in was in an
 * earlier version.
 */
// biome-ignore format: a list to be read as one
// Only the answer about one template has the second one.

const error = (status: number, code: string, message: string, metadata?: object): Said => ({
  status,
  body: { code, message, ...(metadata && { metadata }) },
})
const notFound = (what: string) => error(404, 'document_not_found', `${what} does not exist`)

/** The vendor's times are in the zone of the account. */
const timeOf = (date: Date) => new Date(date.getTime() + 7_200_000).toISOString().replace('Z', '+02:00')

/** As documented at https://developers.brevo.com/reference. */
export function brevoFake(): BrevoFake {
  const { contacts, find, start, facts } = contactBook<Kept>()
  const mails = new Map<string, number>()
  /** What was asked for and is not confirmed yet. */
  const unconfirmed = new Map<string, { readonly attributes?: object; readonly includeListIds: readonly number[] }>()
  let ids = 0

  function add(email: string, attributes: object, listIds: readonly number[], at = timeOf(new Date())): Kept {
    const known = Object.fromEntries(Object.entries(attributes).filter(([name]) => ATTRIBUTES.includes(name)))
    const times = { createdAt: at, modifiedAt: at }
    const kept = { id: ++ids, email, listIds, attributes: known, emailBlacklisted: false, ...times }
    contacts.set(email, kept)
    return kept
  }

  const change = (email: string, more: Partial<Kept>) =>
    void contacts.set(email, { ...contacts.get(email)!, ...more, modifiedAt: timeOf(new Date()) })

  const addTo = (email: string, lists: readonly number[]) =>
    change(email, { listIds: [...new Set([...contacts.get(email)!.listIds, ...lists])] })

  /** What is wrong with what is asked about an address. */
  function wrong(email: unknown, lists: readonly number[]): Said | null {
    if (typeof email !== 'string') return error(400, 'missing_parameter', 'email or SMS is missing')
    if (email.startsWith('refused')) return error(400, 'invalid_parameter', 'Invalid email address')
    const areKnown = lists.every(id => LISTS.includes(id))
    return areKnown ? null : error(400, 'document_not_found', 'List ID does not exist')
  }

  function create({ email, attributes = {}, listIds = [], updateEnabled = false }: Received['json']): Said {
    const refused = wrong(email, listIds)
    if (refused !== null) return refused
    if (updateEnabled !== false) return { status: 204 }
    if (!contacts.has(email)) return { status: 201, body: { id: add(email, attributes, listIds).id } }
    const message = 'Unable to create contact, email is already associated with another Contact'
    return error(400, 'duplicate_parameter', message, { duplicate_identifiers: ['email'] })
  }

  /** As reported by those who use it: while a mail waits for its click, no second one is sent. */
  function askToConfirm(body: Received['json']): Said {
    const { email, includeListIds, templateId, redirectionUrl } = body
    const { isActive, doiTemplate } = (TEMPLATES[templateId] ?? {}) as Record<string, unknown>
    if (!isActive || !doiTemplate) return error(400, 'invalid_parameter', 'An active DOI template does not exist')
    if (!URL.canParse(redirectionUrl)) return error(400, 'missing_parameter', 'redirectionUrl is missing')
    const refused = wrong(email, includeListIds)
    if (refused !== null) return refused
    if (contacts.get(email)?.emailBlacklisted) {
      const message = 'This sms number or email address is already associated with another user'
      return error(400, 'invalid_parameter', message)
    }
    if (unconfirmed.has(email)) return { status: 204 }
    unconfirmed.set(email, body)
    mails.set(email, (mails.get(email) ?? 0) + 1)
    return { status: contacts.has(email) ? 204 : 201 }
  }

  function addToList(list: number, { emails }: { readonly emails: readonly string[] }): Said {
    if (!LISTS.includes(list)) return notFound('List ID')
    const success = emails.filter(email => contacts.get(email)?.listIds.includes(list) === false)
    for (const email of success) addTo(email, [list])
    return success.length > 0
      ? { status: 201, body: { contacts: { success, failure: [] } } }
      : error(400, 'invalid_parameter', 'Contact already in list and/or does not exist')
  }

  const describe = (id: number, is: object | undefined, what: string): Said =>
    is === undefined ? notFound(what) : { status: 200, body: { id, ...is } }

  function send({ identifiers: { email_id, contact_id } }: Received['json']): Said {
    const kept = find(({ id, email }) => id === contact_id || email === email_id)
    if (kept === undefined && email_id === undefined) return error(400, 'invalid_parameter', 'identifiers are invalid')
    // An address that is not there becomes a contact.
    start((kept ?? add(email_id, {}, [])).email)
    return { status: 204 }
  }

  function remove(email: string, { identifierType }: Received['query']): Said {
    if (!contacts.has(email)) return notFound('Contact')
    if (identifierType !== 'email_id') return error(400, 'invalid_parameter', 'identifierType is not valid')
    contacts.delete(email)
    return { status: 204 }
  }

  return {
    ...facts,
    answer: vendorApi({
      refuses: ({ headers }) => (headers['api-key'] === KEY ? undefined : error(401, 'unauthorized', 'Key not found')),
      routes: {
        'POST /v3/contacts': ({ json }) => create(json),
        'POST /v3/contacts/doubleOptinConfirmation': ({ json }) => askToConfirm(json),
        'GET /v3/contacts/attributes': () => ({
          status: 200,
          body: { attributes: ATTRIBUTES.map(name => ({ name, category: 'normal' })) },
        }),
        'GET /v3/contacts/lists/{list}': ({ at }) =>
          describe(Number(at.list), LISTS.includes(Number(at.list)) ? {} : undefined, 'List ID'),
        'POST /v3/contacts/lists/{list}/contacts/add': ({ at, json }) => addToList(Number(at.list), json),
        'GET /v3/contacts/{identifier}': ({ at }) =>
          describe(contacts.get(at.identifier!)?.id ?? 0, contacts.get(at.identifier!), 'Contact'),
        'DELETE /v3/contacts/{identifier}': ({ at, query }) => remove(at.identifier!, query),
        'POST /v3/events': ({ json }) => send(json),
        'GET /v3/smtp/templates/{template}': ({ at }) =>
          describe(Number(at.template), TEMPLATES[at.template!], 'Template ID'),
      },
    }),
    had: email => void add(email, { FIRSTNAME: 'Old' }, [], '2017-05-02T16:40:31.000+02:00'),
    asked: email => mails.get(email) ?? 0,
    confirm(email) {
      const { attributes = {}, includeListIds } = unconfirmed.get(email)!
      unconfirmed.delete(email)
      const kept = contacts.get(email) ?? add(email, {}, [])
      addTo(email, includeListIds)
      change(email, { attributes: { ...kept.attributes, ...attributes } })
    },
    unsubscribe: email => change(email, { emailBlacklisted: true }),
    joined: email => LISTS.every(id => contacts.get(email)?.listIds.includes(id)),
  }
}
