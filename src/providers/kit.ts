import { number, numbers, optional, required, type ValuesOf, word } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import { idAt, memberAt, type Refused, textAt } from '../outbound/reply.ts'
import type { Contact } from '../signup/contact.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import type { Creation } from '../waitlist/ports/provider.ts'
import { ALWAYS, base, type Connect, type Fields, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, forAll, INVALID, isYoungerThanSignup, splitName } from './vendor-client.ts'

const settings = {
  KIT_API_KEY: required(word, 'API key (v4).', 'Kit: Settings, Developer, V4 keys.'),
  KIT_TAG_ID: optional(
    number,
    'Tag that is given to a new contact and starts the automation.',
    'Kit: Subscribers, Tags; the number in its address.',
  ),
  KIT_TAG_IDS: optional(
    numbers,
    'More tags to give to the contact.',
    'Kit: Subscribers, Tags; the number in the address of each.',
  ),
  KIT_FORM_ID: optional(
    number,
    'Form to add the contact to, which may ask it to confirm.',
    'Kit: Grow, Landing pages & forms; the number in its address.',
  ),
  KIT_BASE_URL: base('https://api.kit.com'),
}
type Settings = ValuesOf<typeof settings>

export const kit: Vendor<typeof settings> = {
  title: 'Kit',
  settings,
  rate: { calls: 120, per: 60_000, connections: 5 },
  promises: {
    newness: 'atomic',
    scope: 'account',
    recognisesOwn: true,
    repeatable: ALWAYS,
    namesEvents: false,
    removal: 'by hand',
  },
  takesFields: true,
  contradiction: ({ KIT_TAG_ID: tag, KIT_TAG_IDS: tags }) =>
    tag !== undefined && tags?.includes(tag)
      ? 'KIT_TAG_IDS must not have the tag of KIT_TAG_ID: it would start the automation too early'
      : null,
  client,
}

/** Milliseconds after a 429, which does not say how long to wait: the window of the limit. */
const WINDOW = 60_000

/** A tag or a form. To add a subscriber again changes nothing. */
interface Place {
  readonly name: string
  /** Of its subscribers. */
  readonly path: string
}

interface Found {
  readonly is: 'found'
  readonly subscriber: unknown
  readonly reply: Answer
}

/**
 * https://developers.kit.com/api-reference: the creation is an upsert that would rewrite a first name, so the address is
 * looked up first. Tags and a form take calls of their own, and so does the tag that starts the automation.
 */
function client(settings: Settings, connect: Connect, fields: Fields): VendorClient {
  const { call, get, post } = connect({
    base: settings.KIT_BASE_URL,
    headers: { 'x-kit-api-key': settings.KIT_API_KEY },
    wait: WINDOW,
  })
  const starts = places('tag', 'KIT_TAG_ID', settings.KIT_TAG_ID)
  const [start] = starts
  const tags = places('tag', 'KIT_TAG_IDS', ...(settings.KIT_TAG_IDS ?? []))
  const forms = places('form', 'KIT_FORM_ID', settings.KIT_FORM_ID)

  /** Null if the address is found nowhere in the account. */
  async function find(email: string, attempt: Attempt): Promise<Found | Failure | null> {
    // Without a status only active ones are found.
    const reply = await get('find a subscriber', '/v4/subscribers', attempt, { email_address: email, status: 'all' })
    const subscribers = reply.list('subscribers')
    if (subscribers === undefined) return reply.failure
    const subscriber: unknown = subscribers.find(each => textAt(each, 'email_address')?.toLowerCase() === email)
    return subscriber === undefined ? null : { is: 'found', subscriber, reply }
  }

  async function lookUp(contact: Contact, attempt: Attempt): Promise<Creation | null> {
    const found = await find(contact.email, attempt)
    return found?.is === 'found' ? (existing(found.subscriber, contact) ?? found.reply.failure) : found
  }

  async function create(contact: Contact, attempt: Attempt): Promise<Creation> {
    const body = {
      email_address: contact.email,
      first_name: splitName(contact.name).first,
      // The form makes it active, at once or after it has asked for a confirmation.
      state: settings.KIT_FORM_ID === undefined ? undefined : 'inactive',
      fields: Object.keys(fields).length === 0 ? undefined : fields,
    }
    const reply = await post('create a subscriber', '/v4/subscribers', body, attempt)
    const { status, json } = reply
    const id = idAt(json, 'subscriber', 'id')
    if ((status === 201 || status === 202) && id !== undefined) return { is: 'created', providerId: id }
    // Somebody else added it after the lookup.
    if (status === 200) return existing(memberAt(json, 'subscriber'), contact) ?? reply.failure
    if (status === 422 && isOnlyOfAddress(memberAt(json, 'errors'))) {
      return INVALID
    }
    return reply.failure
  }

  /** Null: the subscriber is there. `more`: members of the request. */
  async function add({ name, path }: Place, { email, providerId }: Contact, attempt: Attempt) {
    const to = `add to the ${name}`
    const whom =
      providerId === undefined
        ? { path, body: { email_address: email } }
        : { path: `${path}/${encodeURIComponent(providerId)}`, body: {} }
    const reply = await call({ to, method: 'POST', ...whom }, attempt)
    // 201: added now. 200: the subscriber was there already.
    return reply.ok && reply.id('subscriber', 'id') !== undefined ? null : reply
  }

  async function join(contact: Contact, attempt: Attempt): Promise<Failure | Refused | null> {
    // The form comes last, since it may send a mail.
    const addTo = (place: Place) => add(place, contact, attempt)
    const reply = (await forAll(tags, addTo)) ?? (await forAll(forms, addTo))
    return reply?.refusal ?? null
  }

  return {
    createContact: async (contact, _doubt, attempt) =>
      (await lookUp(contact, attempt)) ?? (await create(contact, attempt)),

    join: tags.length + forms.length === 0 ? undefined : join,
    joinsLast: true,

    automation:
      start === undefined
        ? null
        : async ({ contact }, attempt) => (await add(start, contact, attempt))?.refusal ?? { is: 'delivered' },

    /** Kit can unsubscribe by its API, but not delete. */
    async remove(email, attempt) {
      const found = await find(email, attempt)
      if (found === null) return { is: 'absent' }
      return found.is === 'found' ? { is: 'by hand', how: 'delete the subscriber in Kit, under Subscribers' } : found
    },

    async check(attempt) {
      const reply = await get('check the API key', '/v4/account', attempt)
      if (reply.status !== 200 || reply.id('account', 'id') === undefined) return reply.failure
      for (const { name, path } of [...starts, ...tags, ...forms]) {
        const found = await get(`look for the ${name}`, path, attempt, { per_page: '1' })
        if (found.list('subscribers') === undefined) return found.failure
      }
      return null
    },
  }
}

const places = (kind: 'tag' | 'form', setting: string, ...ids: readonly (number | undefined)[]): Place[] =>
  ids
    .filter(id => id !== undefined)
    .map(id => ({ name: `${kind} ${id} of ${setting}`, path: `/v4/${kind}s/${id}/subscribers` }))

/** The one thing that Kit is documented to say of an address. Other errors of the same status may be about our settings. */
const isOnlyOfAddress = (errors: unknown): boolean =>
  Array.isArray(errors) && errors.length > 0 && errors.every(each => each === 'Email address is invalid')

/** Undefined: the answer is not a subscriber. */
function existing(subscriber: unknown, contact: Contact): Creation | undefined {
  const providerId = idAt(subscriber, 'id')
  const ours = isYoungerThanSignup(textAt(subscriber, 'created_at'), contact)
  return providerId === undefined ? undefined : { is: 'existing', providerId, ours }
}
