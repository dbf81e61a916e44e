import { createHash } from 'node:crypto'
import { idAt, judge, judgeDelivery, memberAt, type Reply, textAt } from '../outbound/reply.ts'
import type { Creation, Failure } from '../waitlist/ports.ts'
import type { SettingsOf } from './catalogue.ts'
import { type Connect, isYoungerThanSignup, splitName, type VendorClient } from './vendor-client.ts'

/**
 * https://mailchimp.com/developer/marketing/api: a creation answers with 200, or with a 400 titled "Member Exists" if the
 * audience has, or had, the address. A member is identified by its contact id or by a hash of its address.
 */
export function mailchimp(settings: SettingsOf<'mailchimp'>, connect: Connect): VendorClient {
  const key = settings.MAILCHIMP_API_KEY
  const dataCentre = key.slice(key.lastIndexOf('-') + 1)
  const { call } = connect({
    base: settings.MAILCHIMP_BASE_URL ?? `https://${dataCentre}.api.mailchimp.com`,
    headers: { authorization: `Basic ${Buffer.from(`user:${key}`).toString('base64')}` },
  })
  const audience = `/3.0/lists/${encodeURIComponent(settings.MAILCHIMP_AUDIENCE_ID)}`
  const { MAILCHIMP_JOURNEY_ID: journey, MAILCHIMP_STEP_ID: step } = settings
  const status = settings.MAILCHIMP_DOUBLE_OPT_IN ? 'pending' : 'subscribed'

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email, createdAt } = contact
      const { first, last } = splitName(name)
      const body = {
        email_address: email,
        status,
        merge_fields: { FNAME: first, LNAME: last },
        timestamp_signup: `${createdAt.toISOString().slice(0, 19)}+00:00`,
      }
      // Otherwise merge fields that the owner requires, and that our form lacks, would refuse everybody.
      const query = { skip_merge_validation: 'true' }
      const path = `${audience}/members`
      const reply = await call({ to: 'add a member', method: 'POST', path, query, body }, attempt)
      if (reply.is !== 'answered') return reply
      const id = idAt(reply.json, 'contact_id') ?? idAt(reply.json, 'id')
      if (reply.status === 200 && id !== undefined) return { is: 'created', providerId: id }
      if (reply.status !== 400 || memberAt(reply.json, 'title') !== 'Member Exists') return refusedOr(reply)
      if (!doubt) return { is: 'existing' }

      const found = await call({ to: 'find a member', method: 'GET', path: `${path}/${hashOf(email)}` }, attempt)
      if (found.is !== 'answered') return found
      // It was deleted, and only its address is kept, so it is unknown who added it.
      if (found.status === 404) return { is: 'existing' }
      const providerId = idAt(found.json, 'contact_id') ?? idAt(found.json, 'id')
      if (found.status !== 200 || providerId === undefined) return failed(found)
      // A member that was imported or added by hand may have no signup time.
      const joined = textAt(found.json, 'timestamp_signup') ?? textAt(found.json, 'timestamp_opt')
      const ours = isYoungerThanSignup(joined, contact)
      return { is: 'existing', providerId, ours }
    },

    async automation({ name, contact: { email, providerId } }, attempt) {
      const member = encodeURIComponent(providerId ?? hashOf(email))
      const reply = await call(
        journey === undefined
          ? { to: 'send an event', method: 'POST', path: `${audience}/members/${member}/events`, body: { name } }
          : {
              to: 'start a journey',
              method: 'POST',
              path: `/3.0/customer-journeys/journeys/${journey}/steps/${step}/actions/trigger`,
              body: { email_address: email },
            },
        attempt,
      )
      if (reply.is !== 'answered') return reply
      return reply.status === 204 ? { is: 'delivered' } : failed(reply, judgeDelivery)
    },

    async check(attempt) {
      const query = { fields: 'id' }
      const reply = await call({ to: 'check the key and the audience', method: 'GET', path: audience, query }, attempt)
      if (reply.is !== 'answered') return reply
      return reply.status === 200 && idAt(reply.json, 'id') !== undefined ? null : failed(reply)
    },
  }
}

/** MD5 only identifies the member; it protects nothing. */
const hashOf = (email: string): string => createHash('md5').update(email).digest('hex')

/** https://mailchimp.com/developer/marketing/docs/errors: a 403 without JSON is throttling; with JSON, our key is refused. */
function failed<Other = Failure>(reply: Reply, otherwise: (reply: Reply) => Failure | Other = judge): Failure | Other {
  const isThrottled = reply.status === 403 && reply.json === undefined
  return isThrottled ? { is: 'unreached', why: reply.summary } : otherwise(reply)
}

/** The title names the kind of refusal. "Invalid Resource" is about the address only if its detail says so. */
function refusedOr(reply: Reply): Creation {
  const detail = textAt(reply.json, 'detail') ?? ''
  switch (reply.status === 400 ? memberAt(reply.json, 'title') : undefined) {
    case 'Forgotten Email Not Subscribed':
      return {
        is: 'refused',
        reason: 'it was deleted there for good, and its owner would have to ask to be added again',
      }
    case 'Member In Compliance State':
      return { is: 'refused', reason: 'it unsubscribed or bounced there before' }
    case 'Invalid Resource':
      if (/looks fake or invalid|valid email/i.test(detail)) return { is: 'refused', reason: 'it is not valid there' }
      // An address that joined many lists is refused for a while.
      if (/not allowing more signups for now/i.test(detail)) return { is: 'unreached', why: reply.summary }
  }
  return failed(reply)
}
