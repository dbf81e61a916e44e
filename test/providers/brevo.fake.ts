import type { VendorFake } from '../contracts/provider.ts'
import type { Asked, Said } from '../harness/vendor.ts'
import { documented } from '../harness/wire.ts'
import { brevoContract } from './brevo.contract.ts'

const KEY = 'xkeysib-of-the-test'
const LISTS = [2, 5]
const ATTRIBUTES = ['FIRSTNAME', 'LASTNAME', 'VORNAME', 'NACHNAME']

const REDIRECT = 'https://example.com/welcome?from=waitlist'
/** By number: active and for double opt-in; for something else; not active. */
const TEMPLATES: Readonly<Record<string, object>> = {
  7: { isActive: true, doiTemplate: true },
  8: { isActive: true, doiTemplate: false },
  9: { isActive: false, doiTemplate: true },
}

export const brevoDoubleOptIn = {
  BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: '7',
  BREVO_DOUBLE_OPT_IN_REDIRECT_URL: REDIRECT,
}

export const brevoSettings = (url: string) => ({ BREVO_API_KEY: KEY, BREVO_LIST_IDS: '2, 5', BREVO_BASE_URL: url })

interface Kept {
  readonly id: number
  readonly email: string
  readonly listIds: readonly number[]
  readonly attributes: Readonly<Record<string, unknown>>
  readonly createdAt: string
  readonly modifiedAt: string
  readonly emailBlacklisted: boolean
}

export interface BrevoFake extends VendorFake {
  /** How many mails asked this address to confirm. */
  asked(email: string): number
  /** The contact follows the link of the mail. */
  confirm(email: string): void
  unsubscribe(email: string): void
}

const error = (status: number, code: string, message: string, metadata?: object): Said => ({
  status,
  body: { code, message, ...(metadata && { metadata }) },
})

/** The vendor's times are in the zone of the account. */
const timeOf = (date: Date) => new Date(date.getTime() + 7_200_000).toISOString().replace('Z', '+02:00')

/** As documented at https://developers.brevo.com/reference. */
export function brevoFake(): BrevoFake {
  const contacts = new Map<string, Kept>()
  const starts = new Map<string, number>()
  const mails = new Map<string, number>()
  /** What was asked for and is not confirmed yet. */
  const unconfirmed = new Map<string, { readonly attributes?: object; readonly includeListIds: readonly number[] }>()
  let ids = 0

  function add(email: string, attributes: object, listIds: readonly number[], at: string): Kept {
    const known = Object.entries(attributes).filter(([name]) => ATTRIBUTES.includes(name))
    const times = { createdAt: at, modifiedAt: at }
    const kept = { id: ++ids, email, listIds, attributes: Object.fromEntries(known), emailBlacklisted: false, ...times }
    contacts.set(email, kept)
    return kept
  }

  function change(email: string, more: Partial<Kept>): void {
    const modifiedAt = timeOf(new Date())
    contacts.set(email, { ...contacts.get(email)!, ...more, modifiedAt })
  }

  const addTo = (email: string, lists: readonly number[]) =>
    change(email, { listIds: [...new Set([...contacts.get(email)!.listIds, ...lists])] })

  /** As reported by those who use it: while a mail waits for its click, no second one is sent. */
  function askToConfirm(body: Asked['json']): Said {
    const { email, includeListIds, templateId, redirectionUrl } = body
    const { isActive, doiTemplate } = (TEMPLATES[templateId] ?? {}) as Record<string, unknown>
    if (!isActive || !doiTemplate) return error(400, 'invalid_parameter', 'An active DOI template does not exist')
    if (!URL.canParse(redirectionUrl)) return error(400, 'missing_parameter', 'redirectionUrl is missing')
    if (email.startsWith('refused')) return error(400, 'invalid_parameter', 'Invalid email address')
    if (!includeListIds.every((id: number) => LISTS.includes(id))) {
      return error(400, 'document_not_found', 'List ID does not exist')
    }
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
    if (!LISTS.includes(list)) return error(404, 'document_not_found', 'List ID does not exist')
    const success = emails.filter(email => contacts.get(email)?.listIds.includes(list) === false)
    for (const email of success) addTo(email, [list])
    return success.length > 0
      ? { status: 201, body: { contacts: { success, failure: [] } } }
      : error(400, 'invalid_parameter', 'Contact already in list and/or does not exist')
  }

  function describe(what: string, id: string): Said {
    const times = { createdAt: '2017-05-02T16:40:31Z', modifiedAt: '2017-05-02T16:40:31Z' }
    if (what === 'smtp/templates') {
      const template = TEMPLATES[id]
      if (template === undefined) return error(404, 'document_not_found', 'Template ID does not exist')
      const mail = {
        subject: 'Confirm',
        htmlContent: '<a href="{{ params.DOIurl }}">',
        replyTo: 'a@b',
        sender: {},
        tag: '',
      }
      return {
        status: 200,
        body: { id: Number(id), name: 'Confirm', ...template, ...mail, ...times, testSent: true, toField: '' },
      }
    }
    if (!LISTS.includes(Number(id))) return error(404, 'document_not_found', 'List ID does not exist')
    const counts = { totalBlacklisted: 0, totalSubscribers: 0, uniqueSubscribers: 0 }
    return { status: 200, body: { id: Number(id), name: 'Waitlist', folderId: 1, ...counts, ...times } }
  }

  function create(body: Record<string, unknown>): Said {
    const { email, attributes = {}, listIds = [], updateEnabled = false } = body
    if (typeof email !== 'string') return error(400, 'missing_parameter', 'email or SMS is missing')
    if (!/^[^@\s]+@[^@\s]+$/.test(email) || email.startsWith('refused')) {
      return error(400, 'invalid_parameter', 'Invalid email address')
    }
    const lists = listIds as readonly number[]
    if (lists.some(id => !LISTS.includes(id))) return error(400, 'document_not_found', 'List ID does not exist')
    if (updateEnabled !== false) return { status: 204 }
    if (contacts.has(email)) {
      const message = 'Unable to create contact, email is already associated with another Contact'
      return error(400, 'duplicate_parameter', message, { duplicate_identifiers: ['email'] })
    }
    return { status: 201, body: { id: add(email, attributes as object, lists, timeOf(new Date())).id } }
  }

  function send(body: Record<string, unknown>): Said {
    const { event_name: name, identifiers = {} } = body
    if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,255}$/.test(name)) {
      return error(400, 'invalid_parameter', 'event_name is invalid')
    }
    const { email_id, contact_id } = identifiers as { email_id?: string; contact_id?: number }
    const kept = [...contacts.values()].find(({ id, email }) => id === contact_id || email === email_id)
    if (kept === undefined && email_id === undefined) return error(400, 'invalid_parameter', 'identifiers are invalid')
    // An address that is not there becomes a contact.
    const { email } = kept ?? add(email_id!, {}, [], timeOf(new Date()))
    starts.set(email, (starts.get(email) ?? 0) + 1)
    return { status: 204 }
  }

  function answer({ method, path, query, headers, json }: Asked): Said {
    if (headers['api-key'] !== KEY) return error(401, 'unauthorized', 'Key not found')
    if (method === 'POST' && path === '/v3/contacts') return create(json ?? {})
    if (method === 'POST' && path === '/v3/events') return send(json ?? {})
    if (method === 'POST' && path === '/v3/contacts/doubleOptinConfirmation') return askToConfirm(json ?? {})
    const [, list] = /^\/v3\/contacts\/lists\/(\d+)\/contacts\/add$/.exec(path) ?? []
    if (method === 'POST' && list !== undefined) return addToList(Number(list), json)
    if (method === 'GET' && path === '/v3/contacts/attributes') {
      return {
        status: 200,
        body: { attributes: ATTRIBUTES.map(name => ({ name, category: 'normal', type: 'text' })) },
      }
    }
    const [, what, id] = /^\/v3\/(contacts\/lists|smtp\/templates)\/(\d+)$/.exec(path) ?? []
    if (method === 'GET' && what !== undefined) return describe(what, id!)
    const [, identifier] = /^\/v3\/contacts\/(.+)$/.exec(path) ?? []
    if (!['GET', 'DELETE'].includes(method) || identifier === undefined) {
      return error(404, 'document_not_found', 'Not found')
    }
    const kept = contacts.get(identifier)
    if (kept === undefined) return error(404, 'document_not_found', 'Contact does not exist')
    if (method === 'DELETE') {
      if (query.identifierType !== 'email_id') return error(400, 'invalid_parameter', 'identifierType is not valid')
      contacts.delete(identifier)
      return { status: 204 }
    }
    return { status: 200, body: { ...kept, smsBlacklisted: false, whatsappBlacklisted: false, statistics: {} } }
  }

  return {
    answer: documented(brevoContract, answer),
    had: email => void add(email, { FIRSTNAME: 'Old' }, [], '2017-05-02T16:40:31.000+02:00'),
    asked: email => mails.get(email) ?? 0,
    confirm(email) {
      const { attributes = {}, includeListIds } = unconfirmed.get(email)!
      unconfirmed.delete(email)
      const kept = contacts.get(email)
      if (kept !== undefined) {
        addTo(email, includeListIds)
        change(email, { attributes: { ...kept.attributes, ...attributes } })
      } else add(email, attributes, includeListIds, timeOf(new Date()))
    },
    unsubscribe: email => change(email, { emailBlacklisted: true }),
    joined: email => LISTS.every(id => contacts.get(email)?.listIds.includes(id)),
    kept: email => contacts.get(email),
    count: email => (contacts.has(email) ? 1 : 0),
    starts: email => starts.get(email) ?? 0,
  }
}
