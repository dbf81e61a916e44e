import { idAt, judge, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Creation, Failure } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import type { Connect, VendorClient } from './vendor-client.ts'

/** Error codes that say that the address itself is refused, with the end of the sentence for the visitor. */
const refusals: Readonly<Record<string, string>> = {
  email_invalid: 'it is not valid there',
  email_empty: 'it is not valid there',
  email_blocked: 'it is blocked there',
  subscriber_blocked: 'it is blocked there',
  subscriber_suppressed: 'it does not take mail any more',
}

/** There are two codes for it, and the documentation does not say which is sent when. */
const EXISTS = new Set(['email_already_exists', 'subscriber_already_exists'])

/**
 * https://docs.buttondown.com/api-subscribers-create, api-idempotency-keys, api-rate-limits, api-versioning.
 * A creation has no idempotency key, since that would repeat a refusal which is over by now, such as that of the daily
 * limit: our contacts are recognised by their metadata instead.
 */
export function buttondown(settings: SettingsOf<'buttondown'>, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.BUTTONDOWN_BASE_URL,
    headers: { authorization: `Token ${settings.BUTTONDOWN_API_KEY}`, 'x-api-version': '2026-04-01' },
  })
  const mail = settings.BUTTONDOWN_EMAIL_ID
  // Without a type the subscriber is asked to confirm.
  const type = settings.BUTTONDOWN_DOUBLE_OPT_IN ? undefined : 'regular'

  return {
    async createContact({ id, name, email }, doubt, deadline) {
      const metadata = { name, waitlist_id: id }
      const body = { email_address: email, type, tags: settings.BUTTONDOWN_TAGS, metadata }
      const reply = await call({ to: 'create a subscriber', method: 'POST', path: '/v1/subscribers', body }, deadline)
      if (reply.is !== 'answered') return reply
      const providerId = idAt(reply.json, 'id')
      if (reply.status === 201 && providerId !== undefined) return { is: 'created', providerId }
      if (reply.status !== 400 || !EXISTS.has(textAt(reply.json, 'code') ?? '')) return judgeCreation(reply)
      if (!doubt) return { is: 'existing' }

      const path = `/v1/subscribers/${encodeURIComponent(email)}`
      const found = await call({ to: 'find a subscriber', method: 'GET', path }, deadline)
      if (found.is !== 'answered') return found
      const foundId = idAt(found.json, 'id')
      if (found.status !== 200 || foundId === undefined) return judge(found)
      return { is: 'existing', providerId: foundId, ours: memberAt(found.json, 'metadata', 'waitlist_id') === id }
    },

    automation:
      mail === undefined
        ? null
        : async ({ id, contact }, deadline) => {
            const subscriber = encodeURIComponent(contact.providerId ?? contact.email)
            const path = `/v1/subscribers/${subscriber}/emails/${encodeURIComponent(mail)}`
            const headers = { 'x-idempotency-key': id }
            const reply = await call({ to: 'send a mail', method: 'POST', path, headers }, deadline)
            if (reply.is !== 'answered') return reply
            return reply.status === 200 && isObject(reply.json) ? { is: 'delivered' } : judgeConflict(reply)
          },

    async check(deadline) {
      const reply = await call({ to: 'check the API key', method: 'GET', path: '/v1/accounts/me' }, deadline)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && textAt(reply.json, 'username') !== undefined ? null : judge(reply)
    },
  }
}

function judgeCreation(reply: Reply): Creation {
  const { status, json, summary } = reply
  const code = textAt(json, 'code') ?? ''
  if (status === 400) {
    const reason = Object.hasOwn(refusals, code) ? refusals[code] : undefined
    if (reason !== undefined) return { is: 'refused', reason }
    // The daily limit is no 429; its text points to the import instead.
    if (code === 'rate_limited' || /\bimports\b/.test(textAt(json, 'detail') ?? '')) {
      return { is: 'unreached', why: `${summary}: the limit of new subscribers a day` }
    }
  }
  if (status === 422 && saysOfAddress(json)) return { is: 'refused', reason: 'it is not valid there' }
  return judgeConflict(reply)
}

/** Whether all that is said to be wrong (`detail[].loc`) is the address. */
function saysOfAddress(json: unknown): boolean {
  const details = memberAt(json, 'detail')
  if (!Array.isArray(details) || details.length === 0) return false
  return details.every(detail => {
    const place = memberAt(detail, 'loc')
    return Array.isArray(place) && place.includes('email_address')
  })
}

/** A bare 409 is declared for every call and explained for none: perhaps another one is under way. */
const judgeConflict = (reply: Reply): Failure =>
  reply.status === 409 ? { is: 'unclear', why: reply.summary } : judge(reply)

const isObject = (json: unknown): boolean => typeof json === 'object' && json !== null && !Array.isArray(json)
