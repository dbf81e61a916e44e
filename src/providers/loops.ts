import { optional, required, type ValuesOf, word, words } from '../config/kinds.ts'
import { memberAt } from '../outbound/reply.ts'
import { base, type Connect, DAY, type Fields, type Vendor, type VendorClient } from './vendor.ts'
import { INVALID, misconfigured, splitName } from './vendor-client.ts'

const settings = {
  LOOPS_API_KEY: required(word, 'API key.', 'Loops: Settings, API, Generate key.'),
  LOOPS_MAILING_LISTS: optional(words, 'Ids of mailing lists to add the contact to.', 'Loops: Settings, Lists.'),
  LOOPS_BASE_URL: base('https://app.loops.so/api'),
}
type Settings = ValuesOf<typeof settings>

export const loops: Vendor<typeof settings> = {
  title: 'Loops',
  settings,
  rate: { calls: 10, per: 1_000, connections: 10 },
  // Loops does not document how long it keeps the key of an event.
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: DAY,
    namesEvents: true,
    removal: 'at once',
  },
  takesFields: true,
  client,
}

/** Shows in Loops where a contact comes from, and to us which ones we created. */
const SOURCE = 'waitlist'

/** The one thing that Loops is documented to say of an address: any other 400 may be about our settings. */
const INVALID_ADDRESS = /^invalid email address\.?$/i

/** https://loops.so/docs/api-reference: a 409 means a known address, or an idempotency key that was used before. */
function client(settings: Settings, connect: Connect, fields: Fields): VendorClient {
  const { call, get, post } = connect({
    base: settings.LOOPS_BASE_URL,
    headers: { authorization: `Bearer ${settings.LOOPS_API_KEY}` },
  })
  const mailingLists =
    settings.LOOPS_MAILING_LISTS && Object.fromEntries(settings.LOOPS_MAILING_LISTS.map(id => [id, true]))

  return {
    async createContact({ name, email }, doubt, attempt) {
      const { first, last } = splitName(name)
      const body = { ...fields, email, firstName: first, lastName: last, source: SOURCE, mailingLists }
      const reply = await post('create a contact', '/v1/contacts/create', body, attempt)
      const id = reply.id('id')
      if (reply.status === 200 && id !== undefined) return { is: 'created', providerId: id }
      if (reply.status === 400 && INVALID_ADDRESS.test(reply.text('message') ?? '')) {
        return INVALID
      }
      if (reply.status !== 409) return reply.failure
      if (!doubt) return { is: 'existing' }

      const found = await get('find a contact', '/v1/contacts/find', attempt, { email })
      if (found.status !== 200 || !Array.isArray(found.json)) return found.failure
      const providerId = found.id(0, 'id')
      return { is: 'existing', ours: found.at(0, 'source') === SOURCE, providerId }
    },

    // Only `subscribed: true`, which is not sent, would resubscribe the contact.
    join:
      mailingLists &&
      (async ({ email }, attempt) => {
        const body = { email, mailingLists }
        const to = 'add a contact to the mailing lists'
        const reply = await call({ to, method: 'PUT', path: '/v1/contacts/update', body }, attempt)
        return reply.status === 200 && reply.at('success') === true ? null : reply.refusal
      }),

    async automation({ id, name, contact, code }, attempt) {
      const headers = { 'idempotency-key': id }
      const eventProperties = code === undefined ? contact.source : { ...contact.source, code }
      const body = { email: contact.email, eventName: name, eventProperties }
      const reply = await call({ to: 'send an event', method: 'POST', path: '/v1/events/send', headers, body }, attempt)
      // 409: this key was used before, so the event exists.
      if ((reply.status === 200 && reply.at('success') === true) || reply.status === 409) return { is: 'delivered' }
      return reply.refusal
    },

    async remove(email, attempt) {
      const reply = await post('delete a contact', '/v1/contacts/delete', { email }, attempt)
      const success = reply.at('success')
      if (reply.status === 200 && success === true) return { is: 'removed' }
      return reply.status === 404 && success === false ? { is: 'absent' } : reply.failure
    },

    async check(attempt) {
      const reply = await get('check the API key', '/v1/api-key', attempt)
      if (reply.status !== 200 || reply.text('teamName') === undefined) return reply.failure

      if (settings.LOOPS_MAILING_LISTS === undefined) return null
      const listed = await get('check the mailing lists', '/v1/lists', attempt)
      if (listed.status !== 200 || !Array.isArray(listed.json)) return listed.failure
      const there = listed.json.map(list => memberAt(list, 'id'))
      const missing = settings.LOOPS_MAILING_LISTS.find(id => !there.includes(id))
      return missing === undefined ? null : misconfigured(`check the mailing lists: there is no ${missing}`)
    },
  }
}
