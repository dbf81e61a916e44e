import { createHash } from 'node:crypto'
import { address, names, optional, required, type ValuesOf, withDefault, word, yesOrNo } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import { memberAt, textAt } from '../outbound/reply.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import type { Connect, Vendor, VendorClient } from './vendor.ts'
import { type Answer, isYoungerThanSignup, splitName } from './vendor-client.ts'

const settings = {
  MAILCHIMP_API_KEY: required(
    word,
    'API key; the part after the dash names the data centre.',
    'Mailchimp: Account & billing, Extras, API keys.',
  ),
  MAILCHIMP_AUDIENCE_ID: required(word, 'Audience that holds the list.', 'Mailchimp: Audience, Settings, Audience ID.'),
  MAILCHIMP_DOUBLE_OPT_IN: withDefault(yesOrNo, 'false', 'Whether Mailchimp asks the contact to confirm.'),
  MAILCHIMP_TAGS: optional(
    names,
    'Tags to give to the contact; new ones are made.',
    'Mailchimp: Audience, Tags; the name.',
  ),
  MAILCHIMP_BASE_URL: optional(address, 'Address of the API, instead of the one of the data centre.', 'Leave it.'),
}
type Settings = ValuesOf<typeof settings>

export const mailchimp: Vendor<typeof settings> = {
  title: 'Mailchimp',
  settings,
  rate: { calls: 100, per: 1_000, connections: 10 },
  promises: {
    newness: 'atomic',
    scope: 'list',
    recognisesOwn: true,
    repeatable: 0,
    namesEvents: true,
    removal: 'at once',
  },
  contradiction({ MAILCHIMP_API_KEY: key, MAILCHIMP_BASE_URL: url }, events) {
    const wrong = Object.entries(events).find(([, { length }]) => length < 2 || length > 30)
    if (wrong !== undefined) return `${wrong[0]} must have 2 to 30 characters`
    const hasDataCentre = /-[a-z]{2,4}\d{1,3}$/.test(key)
    return hasDataCentre || url !== undefined ? null : 'MAILCHIMP_API_KEY must end with its data centre, such as -us21'
  },
  client,
}

/**
 * https://mailchimp.com/developer/marketing/api: a creation answers with 200, or with a 400 titled "Member Exists" if the
 * audience has, or had, the address. A member is identified by its contact id or by a hash of its address.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const key = settings.MAILCHIMP_API_KEY
  const dataCentre = key.slice(key.lastIndexOf('-') + 1)
  const { call, get, post } = connect({
    base: settings.MAILCHIMP_BASE_URL ?? `https://${dataCentre}.api.mailchimp.com`,
    headers: { authorization: `Basic ${Buffer.from(`user:${key}`).toString('base64')}` },
    // https://mailchimp.com/developer/marketing/docs/errors: without JSON it is throttling; with JSON, our key is refused.
    means: ({ status, json, summary }) => status === 403 && json === undefined && { is: 'unreached', why: summary },
  })
  const audience = `/3.0/lists/${encodeURIComponent(settings.MAILCHIMP_AUDIENCE_ID)}`
  const { MAILCHIMP_TAGS: tags } = settings
  const status = settings.MAILCHIMP_DOUBLE_OPT_IN ? 'pending' : 'subscribed'

  async function checkAudience(attempt: Attempt): Promise<Failure | null> {
    const reply = await get('check the key and the audience', audience, attempt, { fields: 'id' })
    return reply.status === 200 && reply.id('id') !== undefined ? null : reply.failure
  }

  return {
    async createContact(contact, doubt, attempt) {
      const { name, email, createdAt } = contact
      const { first, last } = splitName(name)
      const body = {
        email_address: email,
        status,
        merge_fields: { FNAME: first, LNAME: last },
        timestamp_signup: `${createdAt.toISOString().slice(0, 19)}+00:00`,
        tags,
      }
      // Otherwise merge fields that the owner requires, and that our form lacks, would refuse everybody.
      const query = { skip_merge_validation: 'true' }
      const path = `${audience}/members`
      const reply = await call({ to: 'add a member', method: 'POST', path, query, body }, attempt)
      const id = reply.id('contact_id') ?? reply.id('id')
      if (reply.status === 200 && id !== undefined) return { is: 'created', providerId: id }
      if (reply.status !== 400 || reply.at('title') !== 'Member Exists') return refusedOr(reply)
      if (!doubt) return { is: 'existing' }

      const found = await get('find a member', `${path}/${hashOf(email)}`, attempt)
      // It was deleted, and only its address is kept. One of ours would be found.
      if (found.status === 404) return { is: 'existing', ours: false }
      const providerId = found.id('contact_id') ?? found.id('id')
      if (found.status !== 200 || providerId === undefined) return found.failure
      // A member that was imported or added by hand may have no signup time.
      const joined = found.text('timestamp_signup') ?? found.text('timestamp_opt')
      const ours = isYoungerThanSignup(joined, contact)
      return { is: 'existing', providerId, ours }
    },

    // The status stays, so that nobody is subscribed again.
    join:
      tags &&
      (async ({ email }, attempt) => {
        // Otherwise the tags would start automations.
        const body = { tags: tags.map(name => ({ name, status: 'active' })), is_syncing: true }
        const reply = await post('add tags', `${audience}/members/${hashOf(email)}/tags`, body, attempt)
        return reply.status === 204 || isOutOfReach(reply) ? null : reply.failure
      }),

    async automation({ name, contact: { email, providerId }, code }, attempt) {
      const member = encodeURIComponent(providerId ?? hashOf(email))
      const body = { name, ...(code !== undefined && { properties: { code } }) }
      const reply = await post('send an event', `${audience}/members/${member}/events`, body, attempt)
      return reply.deliveredIf(reply.status === 204)
    },

    /** To delete a member only archives it. */
    async remove(email, attempt) {
      const path = `${audience}/members/${hashOf(email)}/actions/delete-permanent`
      const to = 'delete a member permanently'
      const reply = await call({ to, method: 'POST', path, statusAlone: true }, attempt)
      if (reply.status === 204) return { is: 'removed' }
      // An unknown audience is a 404 too.
      return reply.status === 404 ? ((await checkAudience(attempt)) ?? { is: 'absent' }) : reply.failure
    },

    check: checkAudience,
  }
}

/** MD5 only identifies the member; it protects nothing. */
const hashOf = (email: string): string => createHash('md5').update(email).digest('hex')

/** The member was deleted for good, or may only come back by itself. */
const isOutOfReach = ({ status, json }: Answer): boolean =>
  status === 404 || (status === 400 && memberAt(json, 'title') === 'Member In Compliance State')

/** One reason for all: it must not tell a stranger what an address did before. */
const REFUSED: Creation = { is: 'refused', reason: 'it cannot be added there' }

/** The title names the kind of refusal. */
function refusedOr(reply: Answer): Creation {
  switch (reply.status === 400 ? reply.at('title') : undefined) {
    case 'Forgotten Email Not Subscribed':
    case 'Member In Compliance State':
      return REFUSED
    case 'Invalid Resource':
      if (isAboutAddress(reply.json)) return REFUSED
      // An address that joined many lists is refused for a while.
      if (/not allowing more signups for now/i.test(reply.text('detail') ?? '')) {
        return { is: 'unreached', why: reply.summary, alone: true }
      }
  }
  return reply.failure
}

const INVALID_ADDRESS =
  /^(?:.+ looks fake or invalid, please enter a real email address|please provide a valid email address|an email address must contain a single @)\.?$/i

/** Whether an "Invalid Resource" is the address: by the errors, which name the fields, or by Mailchimp's own words. */
function isAboutAddress(json: unknown): boolean {
  const errors = memberAt(json, 'errors')
  if (!Array.isArray(errors) || errors.length === 0) return INVALID_ADDRESS.test(textAt(json, 'detail') ?? '')
  return errors.every(each => memberAt(each, 'field') === 'email_address')
}
