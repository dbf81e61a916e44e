import { assignments, line, optional, required, type ValuesOf, word, words } from '../config/kinds.ts'
import { idAt, judge, judgeDelivery, memberAt, textAt } from './answer.ts'
import { base, DAY, SECOND, type Vendor } from './vendor.ts'
import { type Connect, splitName, type VendorClient } from './vendor-client.ts'

const settings = {
  LOOPS_API_KEY: required(word, 'API key.', 'Loops: Settings, API, Generate key.'),
  LOOPS_MAILING_LISTS: optional(words, 'Ids of mailing lists to add the contact to.', 'Loops: Settings, Lists.'),
  LOOPS_USER_GROUP: optional(line(500), 'User group of a new contact.', 'Your choice.'),
  LOOPS_CONTACT_PROPERTIES: optional(
    assignments,
    'Custom properties of type string to set on a new contact: name=value, separated by commas.',
    'Loops: Settings, API, the API name; make them there first.',
  ),
  LOOPS_EVENT_PROPERTIES: optional(
    assignments,
    'Properties of type string to send with the event: name=value, separated by commas.',
    'Loops: Events; use the same names in your workflow.',
  ),
  LOOPS_BASE_URL: base('https://app.loops.so/api'),
}
type Settings = ValuesOf<typeof settings>

export const loops: Vendor<typeof settings> = {
  title: 'Loops',
  settings,
  rate: { calls: 10, per: SECOND, connections: 10 },
  // Loops does not document how long it keeps the key of an event.
  promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: DAY, removal: 'at once' },
  joins: ['LOOPS_MAILING_LISTS'],
  contradiction({ LOOPS_CONTACT_PROPERTIES: properties }) {
    const own = ['email', 'firstName', 'lastName', 'mailingLists', 'source', 'subscribed', 'userGroup', 'userId']
    const taken = own.find(name => Object.hasOwn(properties ?? {}, name))
    return taken === undefined ? null : `LOOPS_CONTACT_PROPERTIES must be properties of your own: ${taken} is Loops'`
  },
  client,
}

/** Shows in Loops where a contact comes from, and to us which ones we created. */
const SOURCE = 'waitlist'

/** The one thing that Loops is documented to say of an address: any other 400 may be about our settings. */
const INVALID_ADDRESS = /^invalid email address\.?$/i

/** https://loops.so/docs/api-reference: a 409 means a known address, or an idempotency key that was used before. */
function client(settings: Settings, connect: Connect): VendorClient {
  const { call } = connect({
    base: settings.LOOPS_BASE_URL,
    headers: { authorization: `Bearer ${settings.LOOPS_API_KEY}` },
  })
  const mailingLists =
    settings.LOOPS_MAILING_LISTS && Object.fromEntries(settings.LOOPS_MAILING_LISTS.map(id => [id, true]))
  const properties = settings.LOOPS_CONTACT_PROPERTIES
  /** What the settings name, where Loops lists it, and what is listed there. */
  const named = [
    {
      what: 'mailing lists',
      at: { path: '/v1/lists' },
      names: settings.LOOPS_MAILING_LISTS ?? [],
      nameOf: (list: unknown) => memberAt(list, 'id'),
    },
    {
      what: 'contact properties of type string',
      at: { path: '/v1/contacts/properties', query: { list: 'custom' } },
      names: Object.keys(properties ?? {}),
      nameOf: (property: unknown) => memberAt(property, 'type') === 'string' && memberAt(property, 'key'),
    },
  ]

  return {
    async createContact({ name, email }, doubt, attempt) {
      const { first, last } = splitName(name)
      const userGroup = settings.LOOPS_USER_GROUP
      const body = { ...properties, email, firstName: first, lastName: last, source: SOURCE, userGroup, mailingLists }
      const reply = await call({ to: 'create a contact', method: 'POST', path: '/v1/contacts/create', body }, attempt)
      const id = idAt(reply.json, 'id')
      if (reply.status === 200 && id !== undefined) return { is: 'created', providerId: id }
      if (reply.status === 400 && INVALID_ADDRESS.test(textAt(reply.json, 'message') ?? '')) {
        return { is: 'refused', reason: 'it is not valid there' }
      }
      if (reply.status !== 409) return judge(reply)
      if (!doubt) return { is: 'existing' }

      const found = await call(
        { to: 'find a contact', method: 'GET', path: '/v1/contacts/find', query: { email } },
        attempt,
      )
      if (found.status !== 200 || !Array.isArray(found.json)) return judge(found)
      const providerId = idAt(found.json, 0, 'id')
      return { is: 'existing', ours: memberAt(found.json, 0, 'source') === SOURCE, providerId }
    },

    // Only `subscribed: true`, which is not sent, would resubscribe the contact.
    join:
      mailingLists &&
      (async ({ email }, attempt) => {
        const body = { email, mailingLists }
        const to = 'add a contact to the mailing lists'
        const reply = await call({ to, method: 'PUT', path: '/v1/contacts/update', body }, attempt)
        return reply.status === 200 && memberAt(reply.json, 'success') === true ? null : judgeDelivery(reply)
      }),

    async automation({ id, name, contact }, attempt) {
      const headers = { 'idempotency-key': id }
      const fixed = settings.LOOPS_EVENT_PROPERTIES
      const eventProperties = contact.source === undefined ? fixed : { ...fixed, ...contact.source }
      const body = { email: contact.email, eventName: name, eventProperties }
      const reply = await call({ to: 'send an event', method: 'POST', path: '/v1/events/send', headers, body }, attempt)
      // 409: this key was used before, so the event exists.
      if ((reply.status === 200 && memberAt(reply.json, 'success') === true) || reply.status === 409)
        return { is: 'delivered' }
      return judgeDelivery(reply)
    },

    async remove(email, attempt) {
      const body = { email }
      const reply = await call({ to: 'delete a contact', method: 'POST', path: '/v1/contacts/delete', body }, attempt)
      const success = memberAt(reply.json, 'success')
      if (reply.status === 200 && success === true) return { is: 'removed' }
      return reply.status === 404 && success === false ? { is: 'absent' } : judge(reply)
    },

    async check(attempt) {
      const reply = await call({ to: 'check the API key', method: 'GET', path: '/v1/api-key' }, attempt)
      if (reply.status !== 200 || textAt(reply.json, 'teamName') === undefined) return judge(reply)

      for (const { what, at, names, nameOf } of named) {
        if (names.length === 0) continue
        const listed = await call({ to: `check the ${what}`, method: 'GET', ...at }, attempt)
        if (listed.status !== 200 || !Array.isArray(listed.json)) return judge(listed)
        const there = new Set(listed.json.map(nameOf))
        const missing = names.find(name => !there.has(name))
        if (missing !== undefined) return { is: 'misconfigured', why: `check the ${what}: there is no ${missing}` }
      }
      return null
    },
  }
}
