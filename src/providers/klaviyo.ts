import { optional, required, type ValuesOf, withDefault, word, yesOrNo } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import type { Call } from '../outbound/caller.ts'
import { idAt, inDoubt, memberAt, textAt } from '../outbound/reply.ts'
import type { Contact } from '../signup/contact.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import { ALWAYS, base, type Connect, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, INVALID, isYoungerThanSignup, misconfigured, splitName } from './vendor-client.ts'

const settings = {
  KLAVIYO_API_KEY: required(
    word,
    'Private key with read and write access to profiles and lists, and write access to events and subscriptions.',
    'Klaviyo: Settings, API keys, Create private API key.',
  ),
  KLAVIYO_LIST_ID: optional(
    word,
    'List to add the contact to.',
    'Klaviyo: Audience, Lists & segments, Settings of the list.',
  ),
  KLAVIYO_CONSENT: withDefault(
    yesOrNo,
    'false',
    'Whether a new contact is subscribed to email marketing, so that you may mail it.',
    'Your choice: your form must say so.',
  ),
  KLAVIYO_BASE_URL: base('https://a.klaviyo.com'),
}
type Settings = ValuesOf<typeof settings>

export const klaviyo: Vendor<typeof settings> = {
  title: 'Klaviyo',
  settings,
  // 75 a second and 750 a minute: the slower one, evenly.
  rate: { calls: 12, per: 1_000, connections: 10 },
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: ALWAYS,
    namesEvents: true,
    removal: 'later',
  },
  client,
}

/** Every call names the API version that it was written for. */
const REVISION = '2026-07-15'
/** For adding to a list: 10 a second and 150 a minute. */
const LIST_RATE = { calls: 10, per: 4_000, connections: 5 }

/** Asks for the consent of a profile. */
const withSubscriptions = { 'additional-fields[profile]': 'subscriptions' }

/** A profile that one of our attempts created. */
type Ours = Extract<Creation, { is: 'created' | 'existing' }> & { readonly providerId: string }

/**
 * https://developers.klaviyo.com/en/reference/api_overview (JSON:API). A 409 means a known address and contains its id. A
 * second step subscribes a new profile, if the settings say that it consents, or just adds it to the list. It never
 * subscribes a profile that was there before: that would lift earlier unsubscriptions.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { KLAVIYO_LIST_ID: list, KLAVIYO_CONSENT: consent } = settings
  const account = {
    base: `${settings.KLAVIYO_BASE_URL}/api`,
    headers: {
      authorization: `Klaviyo-API-Key ${settings.KLAVIYO_API_KEY}`,
      revision: REVISION,
      accept: 'application/vnd.api+json',
    },
  }
  const { call, get } = connect(account)

  const request = (to: string, path: string, data: unknown): Call => {
    const headers = { 'content-type': 'application/vnd.api+json' }
    return { to, method: 'POST', path, headers, body: { data } }
  }

  /** Harmless when repeated. Answered with 204. */
  function addingTo(list: string) {
    const lists = connect({ ...account, rate: LIST_RATE })
    const path = `/lists/${encodeURIComponent(list)}/relationships/profiles`
    return (id: string, attempt: Attempt) =>
      lists.call(request('add to the list', path, [{ type: 'profile', id }]), attempt)
  }
  const addToList = list === undefined ? null : addingTo(list)

  /**
   * Klaviyo also adds the profile to the list: with double opt-in, once it has confirmed. Lifts what it had unsubscribed
   * from. Answered with 202: done later.
   */
  function subscribe(id: string, email: string, attempt: Attempt): Promise<Answer> {
    const subscriptions = { email: { marketing: { consent: 'SUBSCRIBED' } } }
    const profiles = { data: [{ type: 'profile', id, attributes: { email, subscriptions } }] }
    const data = {
      type: 'profile-subscription-bulk-create-job',
      attributes: { custom_source: 'waitlist', profiles },
      ...(list !== undefined && { relationships: { list: { data: { type: 'list', id: list } } } }),
    }
    return call(request('subscribe the profile', '/profile-subscription-bulk-create-jobs', data), attempt)
  }

  /** The last step for a profile of ours, as `shown` there. It exists by then, so a failure leaves doubt. */
  async function complete(creation: Ours, shown: Answer, email: string, attempt: Attempt): Promise<Creation> {
    if (consent && hasLeft(shown)) return creation
    const { providerId: id } = creation
    const reply = await (consent ? subscribe(id, email, attempt) : addToList?.(id, attempt))
    if (reply === undefined) return creation
    if (reply.status === (consent ? 202 : 204)) return creation
    return refusesAddress(reply) ? refusal : inDoubt(reply.failure)
  }

  /** For an existing profile: in doubt, checks whether it is ours, and then completes it. */
  async function existing(contact: Contact, id: string, attempt: Attempt): Promise<Creation> {
    const query = consent
      ? { ...withSubscriptions, 'fields[profile]': 'created,subscriptions' }
      : { 'fields[profile]': 'created' }
    const reply = await get('get a profile', `/profiles/${encodeURIComponent(id)}`, attempt, query)
    const ours = isYoungerThanSignup(reply.text('data', 'attributes', 'created'), contact)
    if (reply.status !== 200 || ours === undefined) return reply.failure
    const creation = { is: 'existing', providerId: id, ours } as const
    return ours ? complete(creation, reply, contact.email, attempt) : creation
  }

  return {
    async createContact(contact, doubt, attempt) {
      const { first, last } = splitName(contact.name)
      const attributes = { email: contact.email, first_name: first, last_name: last, properties: contact.source }
      const create = request('create a profile', '/profiles', { type: 'profile', attributes })
      const reply = await call(consent ? { ...create, query: withSubscriptions } : create, attempt)
      const id = reply.id('data', 'id')
      if (reply.status === 201 && id !== undefined) {
        return complete({ is: 'created', providerId: id }, reply, contact.email, attempt)
      }
      if (refusesAddress(reply)) return refusal
      const known = reply.id('errors', 0, 'meta', 'duplicate_profile_id')
      if (reply.status !== 409) return reply.failure
      // The status is enough; the id is sent, but not documented.
      if (known === undefined) return doubt ? reply.failure : { is: 'existing' }
      return doubt ? existing(contact, known, attempt) : { is: 'existing', providerId: known }
    },

    join:
      addToList === null
        ? undefined
        : async ({ providerId }, attempt) => {
            if (providerId === undefined) return { is: 'refused', why: 'add to the list: Klaviyo told no id' }
            const reply = await addToList(providerId, attempt)
            return reply.status === 204 ? null : reply.refusal
          },

    async automation({ id, name, contact: { email, providerId, source }, code }, attempt) {
      const attributes = {
        properties: { ...source, code },
        metric: { data: { type: 'metric', attributes: { name } } },
        // With an id, an address would be written into the profile.
        profile: {
          data: { type: 'profile', ...(providerId ? { id: providerId, attributes: {} } : { attributes: { email } }) },
        },
        unique_id: id,
      }
      const reply = await call(request('create an event', '/events', { type: 'event', attributes }), attempt)
      return reply.deliveredIf(reply.status === 202)
    },

    async remove(email, attempt) {
      // No address that we take has a quote or a backslash.
      const query = { filter: `equals(email,"${email}")`, 'fields[profile]': 'email' }
      const found = await get('find a profile', '/profiles', attempt, query)
      const profiles = found.list('data')
      if (profiles === undefined) return found.failure
      const ids = profiles
        .filter(each => textAt(each, 'attributes', 'email')?.toLowerCase() === email)
        .map(each => idAt(each, 'id'))
      if (ids.includes(undefined)) return found.failure
      for (const id of ids) {
        const data = { type: 'profile', id, attributes: {} }
        const job = { type: 'data-privacy-deletion-job', attributes: { profile: { data } } }
        const deletion = request('ask for the deletion of a profile', '/data-privacy-deletion-jobs', job)
        const reply = await call({ ...deletion, statusAlone: true }, attempt)
        if (reply.status === 403) {
          return misconfigured(`${reply.summary}: the key needs the scope data-privacy:write`)
        }
        if (reply.status !== 202) return reply.failure
      }
      return { is: ids.length === 0 ? 'absent' : 'removed' }
    },

    async check(attempt) {
      const query = { 'fields[profile]': 'created', 'page[size]': '1' }
      const reply = await get('check the API key', '/profiles', attempt, query)
      if (reply.list('data') === undefined) return reply.failure
      if (list === undefined) return null
      const path = `/lists/${encodeURIComponent(list)}`
      const look = { to: 'check the list', method: 'GET', path, query: { 'fields[list]': 'name' } } as const
      const found = await call(look, attempt)
      return found.status === 200 && found.id('data', 'id') !== undefined ? null : found.failure
    },
  }
}

const refusal: Creation = INVALID

/** An error points to the member that it is about. */
function refusesAddress({ status, json }: Answer): boolean {
  const errors = memberAt(json, 'errors')
  const isAboutAddress = (error: unknown) => textAt(error, 'source', 'pointer')?.endsWith('/attributes/email')
  return status === 400 && Array.isArray(errors) && errors.some(isAboutAddress)
}

/** Whether the profile has unsubscribed or is suppressed, which a subscription would lift. */
function hasLeft({ json }: Answer): boolean {
  const marketing = memberAt(json, 'data', 'attributes', 'subscriptions', 'email', 'marketing')
  const suppression = memberAt(marketing, 'suppression')
  return textAt(marketing, 'consent') === 'UNSUBSCRIBED' || (Array.isArray(suppression) && suppression.length > 0)
}
