import { names, optional, required, type ValuesOf, withDefault, word, yesOrNo } from '../config/kinds.ts'
import { memberAt, textAt } from '../outbound/reply.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import { base, type Connect, DAY, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, INVALID } from './vendor-client.ts'

const settings = {
  BUTTONDOWN_API_KEY: required(
    word,
    'API key with write access to subscribers; for a mail also with read access to emails.',
    'Buttondown: Settings, API.',
  ),
  BUTTONDOWN_TAGS: optional(names, 'Tags to give to the contact; new ones are made.', 'Buttondown: Tags; the name.'),
  BUTTONDOWN_DOUBLE_OPT_IN: withDefault(yesOrNo, 'true', 'Whether Buttondown asks the contact to confirm.'),
  BUTTONDOWN_EMAIL_ID: optional(word, 'Mail to send to a new contact.', 'Buttondown: Emails; the id in its address.'),
  BUTTONDOWN_BASE_URL: base('https://api.buttondown.com'),
}
type Settings = ValuesOf<typeof settings>

export const buttondown: Vendor<typeof settings> = {
  title: 'Buttondown',
  settings,
  rate: { calls: 10, per: 1_000, connections: 10 },
  // Not documented. The design that Buttondown refers to keeps an idempotency key for a day.
  promises: {
    newness: 'atomic',
    scope: 'list',
    recognisesOwn: true,
    repeatable: DAY,
    namesEvents: false,
    removal: 'at once',
  },
  client,
}

/** Error codes that can only mean this address, with the end of the sentence for the visitor. */
const refusals: Readonly<Record<string, string>> = {
  email_invalid: 'it is not valid there',
  email_blocked: 'it is not accepted there',
  subscriber_suppressed: 'it is not accepted there',
}

/** Two codes for a known address; the documentation does not say which is sent when. */
const EXISTS = new Set(['email_already_exists', 'subscriber_already_exists'])

/**
 * https://docs.buttondown.com/api-subscribers-create, api-idempotency-keys, api-rate-limits, api-versioning.
 * A creation gets no idempotency key, which would also repeat temporary refusals such as the daily limit. Our contacts are
 * recognised by their metadata instead.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { call, get, post } = connect({
    base: settings.BUTTONDOWN_BASE_URL,
    headers: { authorization: `Token ${settings.BUTTONDOWN_API_KEY}`, 'x-api-version': '2026-04-01' },
    // Without a code it is documented for every call and explained for none: perhaps another call is under way.
    means: ({ status, safe, summary }) => status === 409 && !safe && { is: 'unclear', why: summary },
  })
  const { BUTTONDOWN_EMAIL_ID: mail, BUTTONDOWN_TAGS: tags } = settings
  // Without a type the subscriber is asked to confirm.
  const type = settings.BUTTONDOWN_DOUBLE_OPT_IN ? undefined : 'regular'
  /** What the check asks for, and the member of a sound answer. */
  const named: { what: string; path: string; query?: Record<string, string>; statusAlone?: true; member?: string }[] = [
    { what: 'the API key', path: '/v1/accounts/me', member: 'username' },
  ]
  // The answer has the whole mail, which may be longer than we read.
  if (mail !== undefined)
    named.push({ what: 'the mail', path: `/v1/emails/${encodeURIComponent(mail)}`, statusAlone: true })
  // Tags that are missing are made, if the plan has tags.
  if (tags !== undefined)
    named.push({ what: 'the tags', path: '/v1/tags', query: { page_size: '1' }, member: 'results' })

  return {
    async createContact(contact, doubt, attempt) {
      const { id, name, email, source } = contact
      const body = {
        email_address: email,
        type,
        tags,
        metadata: { name, waitlist_id: id, ...source },
      }
      const reply = await post('create a subscriber', '/v1/subscribers', body, attempt)
      const providerId = reply.id('id')
      if (reply.status === 201 && providerId !== undefined) return { is: 'created', providerId }
      if (reply.status !== 400 || !EXISTS.has(reply.text('code') ?? '')) return judgeCreation(reply)
      if (!doubt) return { is: 'existing' }

      const found = await get('find a subscriber', `/v1/subscribers/${encodeURIComponent(email)}`, attempt)
      // One of ours would be found.
      if (found.status === 404) return { is: 'existing', ours: false }
      const foundId = found.id('id')
      if (found.status !== 200 || foundId === undefined) return found.failure
      return { is: 'existing', providerId: foundId, ours: found.at('metadata', 'waitlist_id') === id }
    },

    // The collision behaviour `add` of a creation adds tags, too, but it also resubscribes those who have unsubscribed.
    join:
      tags &&
      (async ({ email }, attempt) => {
        const path = `/v1/subscribers/${encodeURIComponent(email)}`
        const found = await get('find a subscriber', path, attempt)
        if (found.status === 404) return null
        const has = found.list('tags')
        if (has === undefined) return found.failure
        if (tags.every(tag => has.includes(tag))) return null
        const body = { tags: [...new Set([...has, ...tags])] }
        const reply = await call({ to: 'tag a subscriber', method: 'PATCH', path, body }, attempt)
        const isDone = reply.status === 200 && reply.id('id') !== undefined
        return isDone || isUnchangeable(reply) ? null : reply.failure
      }),

    automation:
      mail === undefined
        ? null
        : async ({ id, contact }, attempt) => {
            const subscriber = encodeURIComponent(contact.providerId ?? contact.email)
            const path = `/v1/subscribers/${subscriber}/emails/${encodeURIComponent(mail)}`
            const headers = { 'x-idempotency-key': id }
            const reply = await call({ to: 'send a mail', method: 'POST', path, headers }, attempt)
            return reply.deliveredIf(reply.status === 200 && isObject(reply.json))
          },

    async remove(email, attempt) {
      const path = `/v1/subscribers/${encodeURIComponent(email)}`
      const reply = await call({ to: 'delete a subscriber', method: 'DELETE', path, statusAlone: true }, attempt)
      if (reply.status === 204) return { is: 'removed' }
      const isAbsent = reply.status === 404 && reply.text('detail') !== undefined
      return isAbsent ? { is: 'absent' } : reply.failure
    },

    async check(attempt) {
      for (const { what, member, ...asked } of named) {
        const reply = await call({ to: `check ${what}`, method: 'GET', ...asked }, attempt)
        const isThere = member === undefined || reply.at(member) !== undefined
        if (reply.status !== 200 || !isThere) return reply.failure
      }
      return null
    },
  }
}

function judgeCreation(reply: Answer): Creation {
  const { status, json, summary } = reply
  const code = textAt(json, 'code') ?? ''
  if (status === 400) {
    const reason = Object.hasOwn(refusals, code) ? refusals[code] : undefined
    if (reason !== undefined) return { is: 'refused', reason }
    // The firewall also weighs the address that calls, which is ours for everybody: no reason to drop the signup.
    if (code === 'subscriber_blocked') return { is: 'unreached', why: summary, alone: true }
    // The daily limit is not a 429; its text recommends imports.
    if (code === 'rate_limited' || /\bimports\b/.test(textAt(json, 'detail') ?? '')) {
      return { is: 'unreached', why: `${summary}: the limit of new subscribers a day` }
    }
  }
  if (status === 422 && saysOfAddress(json)) return INVALID
  return reply.failure
}

/** Whether everything that is wrong (`detail[].loc`) is in the address. */
function saysOfAddress(json: unknown): boolean {
  const details = memberAt(json, 'detail')
  if (!Array.isArray(details) || details.length === 0) return false
  return details.every(detail => {
    const place = memberAt(detail, 'loc')
    return Array.isArray(place) && place.includes('email_address')
  })
}

/** The codes of an update that mean the subscriber, whatever it is about: no later attempt would change it. */
const isUnchangeable = ({ status, json }: Answer): boolean =>
  status === 400 && ['email_invalid', 'firewall_blocked'].includes(textAt(json, 'code') ?? '')

const isObject = (json: unknown): boolean => typeof json === 'object' && json !== null && !Array.isArray(json)
