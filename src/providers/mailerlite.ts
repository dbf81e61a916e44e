import { optional, required, type ValuesOf, withDefault, word, words, yesOrNo } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import { idAt, textAt } from '../outbound/reply.ts'
import type { Contact } from '../signup/contact.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import { ALWAYS, base, type Connect, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, forAll, isYoungerThanSignup, splitName } from './vendor-client.ts'

const settings = {
  MAILERLITE_API_KEY: required(word, 'API token.', 'MailerLite: Integrations, API, Generate new token.'),
  MAILERLITE_GROUP_ID: optional(
    word,
    'Group that a new contact joins, which starts the automation.',
    'MailerLite: Subscribers, Groups; the number in its address.',
  ),
  MAILERLITE_GROUP_IDS: optional(
    words,
    'More groups to add the contact to.',
    'MailerLite: Subscribers, Groups; the number in the address of each.',
  ),
  MAILERLITE_DOUBLE_OPT_IN: withDefault(
    yesOrNo,
    'false',
    'Whether the contact is unconfirmed until it confirms.',
    'Your choice; MailerLite asks the contact if Account settings, Subscribe settings, Double opt-in for API and integrations is on.',
  ),
  MAILERLITE_BASE_URL: base('https://connect.mailerlite.com'),
}
type Settings = ValuesOf<typeof settings>

export const mailerlite: Vendor<typeof settings> = {
  title: 'MailerLite',
  settings,
  rate: { calls: 120, per: 60_000, connections: 5 },
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: ALWAYS,
    namesEvents: false,
    removal: 'later',
  },
  contradiction: ({ MAILERLITE_GROUP_ID: group, MAILERLITE_GROUP_IDS: groups }) =>
    group !== undefined && groups?.includes(group)
      ? 'MAILERLITE_GROUP_IDS must not have the group of MAILERLITE_GROUP_ID: it would start the automation too early'
      : null,
  client,
}

/**
 * https://developers.mailerlite.com/docs/subscribers and /groups: a creation updates an existing subscriber, so a lookup
 * comes first. There are no events: joining a group starts the owner's automation; joining again changes nothing.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { call, get, post } = connect({
    base: settings.MAILERLITE_BASE_URL,
    // Required in every request, even without a body.
    headers: { authorization: `Bearer ${settings.MAILERLITE_API_KEY}`, 'content-type': 'application/json' },
  })
  const { MAILERLITE_GROUP_ID: group, MAILERLITE_GROUP_IDS: groups } = settings

  /** Null: the contact is in the group. */
  async function join(id: string, contact: Contact, attempt: Attempt) {
    const subscriber = encodeURIComponent(contact.providerId ?? contact.email)
    const path = `/api/subscribers/${subscriber}/groups/${encodeURIComponent(id)}`
    const reply = await call({ to: `add to the group ${id}`, method: 'POST', path }, attempt)
    return reply.ok && reply.id('data', 'id') === id ? null : reply
  }

  function find(email: string, attempt: Attempt): Promise<Answer> {
    return get('find a subscriber', `/api/subscribers/${encodeURIComponent(email)}`, attempt)
  }

  return {
    async createContact(contact, _doubt, attempt) {
      const { name, email, createdAt } = contact
      const found = await find(email, attempt)
      if (found.status === 200) return existing(found, contact) ?? found.failure
      if (found.status !== 404) return found.failure

      const { first, last } = splitName(name)
      // With double opt-in, a contact opts in when it confirms. Times without a zone are in UTC.
      const consent = settings.MAILERLITE_DOUBLE_OPT_IN
        ? { status: 'unconfirmed' }
        : { opted_in_at: createdAt.toISOString().slice(0, 19).replace('T', ' ') }
      const body = { email, fields: { name: first, last_name: last }, groups, ...consent }
      const reply = await post('create a subscriber', '/api/subscribers', body, attempt)
      const providerId = reply.id('data', 'id')
      if (reply.status === 201 && providerId !== undefined) return { is: 'created', providerId }
      // Somebody else added it after the lookup.
      if (reply.status === 200) return existing(reply, contact) ?? reply.failure
      if (reply.status === 422 && isOnlyOfAddress(reply.at('errors'))) {
        return { is: 'refused', reason: 'it is not accepted there' }
      }
      return reply.failure
    },

    join:
      groups &&
      (async (contact, attempt) => {
        const reply = await forAll(groups, id => join(id, contact, attempt))
        return reply?.refusal ?? null
      }),

    automation:
      group === undefined
        ? null
        : async ({ contact }, attempt) => {
            const reply = await join(group, contact, attempt)
            if (reply === null) return { is: 'delivered' }
            return reply.refusal
          },

    /** To delete a subscriber would keep all about it, in case it comes back. */
    async remove(email, attempt) {
      const found = await find(email, attempt)
      if (isNotFound(found)) return { is: 'absent' }
      const id = found.id('data', 'id')
      const isTheirs = found.text('data', 'email')?.toLowerCase() === email
      if (found.status !== 200 || id === undefined || !isTheirs) return found.failure
      const path = `/api/subscribers/${encodeURIComponent(id)}/forget`
      const reply = await call({ to: 'forget a subscriber', method: 'POST', path }, attempt)
      return reply.removedIf(reply.status === 200 && reply.id('data', 'id') === id)
    },

    async check(attempt) {
      const query = { limit: '1' }
      const wanted = [...(group === undefined ? [] : [group]), ...(groups ?? [])]
      const calls = wanted.map(id => ({
        to: `look for the group ${id}`,
        path: `/api/groups/${encodeURIComponent(id)}/subscribers`,
      }))
      if (calls.length === 0) calls.push({ to: 'check the API key', path: '/api/groups' })
      for (const { to, path } of calls) {
        const reply = await get(to, path, attempt, query)
        if (reply.list('data') === undefined) return reply.failure
      }
      return null
    },
  }
}

/** Not that there is no such path. */
const isNotFound = ({ status, json }: Answer): boolean =>
  status === 404 && /^(?:resource )?not found/i.test(textAt(json, 'message') ?? '')

const isOnlyOfAddress = (errors: unknown): boolean =>
  typeof errors === 'object' && errors !== null && Object.keys(errors).join() === 'email'

/** Undefined: the answer is not a subscriber. Its times are in UTC, and do not say so. */
function existing({ json }: Answer, contact: Contact): Creation | undefined {
  const providerId = idAt(json, 'data', 'id')
  const created = textAt(json, 'data', 'created_at')
  const ours = isYoungerThanSignup(created && `${created.replace(' ', 'T')}Z`, contact)
  return providerId === undefined ? undefined : { is: 'existing', providerId, ours }
}
