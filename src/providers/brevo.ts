import { number, numbers, optional, page, required, type ValuesOf, withDefault, word } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import { memberAt, textAt } from '../outbound/reply.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import type { Contact } from '../waitlist/rules/contact.ts'
import { base, type Connect, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, INVALID, isYoungerThanSignup, misconfigured, splitName } from './vendor-client.ts'

const settings = {
  BREVO_API_KEY: required(word, 'API key.', 'Brevo: Settings, SMTP & API, API keys.'),
  BREVO_LIST_IDS: optional(numbers, 'Lists to add the contact to.', 'Brevo: Contacts, Lists; the number after #.'),
  BREVO_FIRST_NAME_ATTRIBUTE: withDefault(
    word,
    'FIRSTNAME',
    'Attribute for the first name.',
    'Brevo: Contacts, Settings, Contact attributes.',
  ),
  BREVO_LAST_NAME_ATTRIBUTE: withDefault(
    word,
    'LASTNAME',
    'Attribute for the rest of the name.',
    'Brevo: Contacts, Settings, Contact attributes.',
  ),
  BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: optional(
    number,
    'Template of the mail that asks the contact to confirm, before it is created.',
    'Brevo: Templates; the number after # of a double opt-in template.',
  ),
  BREVO_DOUBLE_OPT_IN_REDIRECT_URL: optional(
    page,
    'Page that the contact sees after confirming; with BREVO_DOUBLE_OPT_IN_TEMPLATE_ID.',
    'A page of yours that anybody can open.',
  ),
  BREVO_BASE_URL: base('https://api.brevo.com'),
}
type Settings = ValuesOf<typeof settings>

export const brevo: Vendor<typeof settings> = {
  title: 'Brevo',
  settings,
  rate: { calls: 10, per: 1_000, connections: 10 },
  // With double opt-in there is only a lookup before.
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: 0,
    namesEvents: true,
    removal: 'at once',
  },
  joins: ['BREVO_LIST_IDS'],
  contradiction({
    BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: template,
    BREVO_DOUBLE_OPT_IN_REDIRECT_URL: redirect,
    BREVO_LIST_IDS: lists,
  }) {
    if ((template === undefined) !== (redirect === undefined)) {
      return 'BREVO_DOUBLE_OPT_IN_TEMPLATE_ID and BREVO_DOUBLE_OPT_IN_REDIRECT_URL belong together: set both or none'
    }
    return template !== undefined && lists === undefined
      ? 'BREVO_DOUBLE_OPT_IN_TEMPLATE_ID needs BREVO_LIST_IDS: those who confirm are added to them'
      : null
  },
  client,
}

/**
 * https://developers.brevo.com/reference: without `updateEnabled` a known address is refused, and nothing about it
 * changes, not even its lists. Attributes that the account does not have are ignored.
 *
 * With double opt-in, Brevo creates the contact when it confirms, and until then finds nothing at its address.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { call, get, post } = connect({
    base: settings.BREVO_BASE_URL,
    headers: { 'api-key': settings.BREVO_API_KEY },
    waitFields: ['x-sib-ratelimit-reset', 'retry-after'],
  })
  const { BREVO_FIRST_NAME_ATTRIBUTE: firstName, BREVO_LAST_NAME_ATTRIBUTE: lastName } = settings
  const { BREVO_LIST_IDS: lists, BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: templateId } = settings
  const isDoubleOptIn = templateId !== undefined

  const attributesOf = ({ name }: Contact) => {
    const { first, last } = splitName(name)
    return { [firstName]: first, ...(last !== undefined && { [lastName]: last }) }
  }

  const find = ({ email }: Contact, attempt: Attempt) =>
    get('find a contact', `/v3/contacts/${encodeURIComponent(email)}`, attempt)

  /** A contact that Brevo has; in doubt with its id, and whether it is ours. */
  function existing(found: Answer, contact: Contact, doubt: boolean): Creation {
    const providerId = found.id('id')
    if (found.status !== 200 || providerId === undefined) return refusedOr(found)
    if (!doubt) return { is: 'existing' }
    return { is: 'existing', providerId, ours: isYoungerThanSignup(found.text('createdAt'), contact) }
  }

  async function create(contact: Contact, doubt: boolean, attempt: Attempt): Promise<Creation> {
    const body = { email: contact.email, attributes: attributesOf(contact), listIds: lists, updateEnabled: false }
    const reply = await post('create a contact', '/v3/contacts', body, attempt)
    const id = reply.id('id')
    if (reply.status === 201 && id !== undefined) return { is: 'created', providerId: id }
    if (!isKnown(reply)) return refusedOr(reply)
    if (!doubt) return { is: 'existing' }
    const found = await find(contact, attempt)
    // One of ours would be found.
    return found.status === 404 ? { is: 'existing', ours: false } : existing(found, contact, doubt)
  }

  /** Asks for a confirmation. Repeated before that, it sends no second mail and is answered with 204. */
  const ask = (email: string, attributes: object | undefined, attempt: Attempt) => {
    const redirectionUrl = settings.BREVO_DOUBLE_OPT_IN_REDIRECT_URL
    const body = { email, attributes, includeListIds: lists, templateId, redirectionUrl }
    const path = '/v3/contacts/doubleOptinConfirmation'
    return call({ to: 'ask for a confirmation', method: 'POST', path, body, statusAlone: true }, attempt)
  }

  async function createConfirmed(contact: Contact, doubt: boolean, attempt: Attempt): Promise<Creation> {
    const found = await find(contact, attempt)
    if (found.status !== 404) return existing(found, contact, doubt)
    const reply = await ask(contact.email, attributesOf(contact), attempt)
    if (reply.ok) return { is: 'created' }
    // One of ours would be found, or be asked without a word.
    return isKnown(reply) ? { is: 'existing', ours: false } : refusedOr(reply)
  }

  /** Only the lists that are missing cost a call, so an attempt goes on where the last one ended. */
  async function join(contact: Contact, attempt: Attempt): Promise<Failure | null> {
    const found = await find(contact, attempt)
    // It is only blocked there, or deleted meanwhile.
    if (found.status === 404) return null
    const listIds = found.list('listIds')
    if (listIds === undefined) return found.failure
    const missing = lists?.filter(list => !listIds.includes(list)) ?? []
    if (isDoubleOptIn && missing.length > 0) {
      // Nobody gets on a list without a confirmation, and those who unsubscribed are not asked to come back.
      if (found.at('emailBlacklisted') === true) return null
      const reply = await ask(contact.email, undefined, attempt)
      return reply.ok || isKnown(reply) ? null : reply.failure
    }
    // An update of the contact could name all of them at once, but is reported to take it off its other lists.
    for (const list of missing) {
      const path = `/v3/contacts/lists/${list}/contacts/add`
      const reply = await post(`add to the list ${list}`, path, { emails: [contact.email] }, attempt)
      if (reply.status !== 201 && !isOnList(reply)) return reply.failure
    }
    return null
  }

  return {
    createContact: isDoubleOptIn ? createConfirmed : create,

    join: lists === undefined ? undefined : join,

    // Before the contact confirmed there is none to send an event for. Being added to the list starts what follows.
    automation: isDoubleOptIn
      ? null
      : async ({ name, contact: { email, providerId, source }, code }, attempt) => {
          const body = {
            // Letters, digits, - and _ are allowed.
            event_name: name.replaceAll(/[^A-Za-z0-9_-]/g, '_'),
            // By its address, a contact that was deleted meanwhile would be created anew; not so by its id.
            identifiers: providerId === undefined ? { email_id: email } : { contact_id: Number(providerId) },
            event_properties: code === undefined ? source : { ...source, code },
          }
          const reply = await post('send an event', '/v3/events', body, attempt)
          return reply.deliveredIf(reply.ok)
        },

    async remove(email, attempt) {
      const path = `/v3/contacts/${encodeURIComponent(email)}`
      const query = { identifierType: 'email_id' }
      const to = 'delete a contact'
      const reply = await call({ to, method: 'DELETE', path, query, statusAlone: true }, attempt)
      if (reply.status === 204) return { is: 'removed' }
      const isAbsent = reply.status === 404 && reply.at('code') === 'document_not_found'
      return isAbsent ? { is: 'absent' } : reply.failure
    },

    /** What is under /v3/contacts may be asked often; a template a hundred times an hour. */
    async check(attempt) {
      const attributes = await get('check the key and the attributes', '/v3/contacts/attributes', attempt)
      const known = attributes.list('attributes')
      if (known === undefined) return attributes.failure
      const missing = [firstName, lastName].filter(name => !known.some(each => memberAt(each, 'name') === name))
      if (missing.length > 0) {
        return misconfigured(`check the attributes: the account has no ${missing.join(', ')}`)
      }
      for (const list of lists ?? []) {
        const reply = await get(`check the list ${list}`, `/v3/contacts/lists/${list}`, attempt)
        if (reply.status !== 200 || reply.id('id') !== String(list)) return reply.failure
      }
      if (!isDoubleOptIn) return null
      const template = await get('check the template', `/v3/smtp/templates/${templateId}`, attempt)
      if (template.status !== 200 || template.id('id') === undefined) return template.failure
      const isUsable = template.at('isActive') === true && template.at('doiTemplate') === true
      return isUsable ? null : misconfigured(`check the template: ${templateId} is no active double opt-in template`)
    },
  }
}

/** The metadata is newer than the code, and has been seen with a different one; a double opt-in has only the words. */
const isKnown = ({ status, json }: Answer): boolean =>
  status === 400 &&
  (memberAt(json, 'code') === 'duplicate_parameter' ||
    memberAt(json, 'metadata', 'duplicate_identifiers') !== undefined ||
    /\bemail(?: address)? is already associated with another (?:contact|user)\b/i.test(textAt(json, 'message') ?? ''))

/** Another tool was faster. */
const isOnList = ({ status, json }: Answer): boolean =>
  status === 400 && /^contact already in list/i.test(textAt(json, 'message') ?? '')

/** The code is that of every wrong parameter, such as our lists; only these words mean the address. */
function refusedOr(reply: Answer): Creation {
  const isAddress =
    reply.status === 400 &&
    reply.at('code') === 'invalid_parameter' &&
    /^invalid email address\.?$/i.test(reply.text('message') ?? '')
  return isAddress ? INVALID : reply.failure
}
