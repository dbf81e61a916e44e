import { optional, required, withDefault, word, yesOrNo } from '../config/readers.ts'
import { base, contactIn, DAY, names, type Vendor } from './vendor.ts'

const settings = {
  BUTTONDOWN_API_KEY: required(
    word,
    'API key that may write subscribers and read emails.',
    'Buttondown: Settings, API.',
  ),
  BUTTONDOWN_TAGS: optional(names, 'Tags to give to the contact; new ones are made.', 'Buttondown: Tags; the name.'),
  BUTTONDOWN_DOUBLE_OPT_IN: withDefault(yesOrNo, 'true', 'Whether Buttondown asks the contact to confirm.'),
  BUTTONDOWN_EMAIL_ID: optional(word, 'Mail to send to a new contact.', 'Buttondown: Emails; the id in its address.'),
  BUTTONDOWN_BASE_URL: base('https://api.buttondown.com'),
}

/**
 * https://docs.buttondown.com/api-subscribers-create, api-idempotency-keys, api-rate-limits, api-versioning. A creation
 * gets no idempotency key, which would also repeat temporary refusals such as the daily limit.
 */
export const buttondown: Vendor<typeof settings> = {
  title: 'Buttondown',
  settings,
  // Not documented. The design that Buttondown refers to keeps an idempotency key for a day.
  repeatable: DAY,
  namesEvents: false,
  connect: ({ BUTTONDOWN_BASE_URL, BUTTONDOWN_API_KEY }) => ({
    base: BUTTONDOWN_BASE_URL,
    headers: { authorization: `Token ${BUTTONDOWN_API_KEY}`, 'x-api-version': '2026-04-01' },
  }),
  check: ({ BUTTONDOWN_EMAIL_ID: mail, BUTTONDOWN_TAGS: tags }) => [
    '/v1/accounts/me',
    ...(mail === undefined ? [] : [`/v1/emails/${encodeURIComponent(mail)}`]),
    // Tags that are missing are made, if the plan has tags.
    ...(tags === undefined ? [] : ['/v1/tags?page_size=1']),
  ],

  async create({ name, email, source }, { settings, post }) {
    // Without a type the subscriber is asked to confirm.
    const type = settings.BUTTONDOWN_DOUBLE_OPT_IN ? undefined : 'regular'
    const body = { email_address: email, type, tags: settings.BUTTONDOWN_TAGS, metadata: { name, ...source } }
    const reply = await post('create a subscriber', '/v1/subscribers', body)
    // Two codes; the documentation does not say which is sent when.
    const isKnown = /^(?:email|subscriber)_already_exists$/.test(reply.json?.code)
    if (reply.status === 400 && isKnown) return { is: 'existing' }
    // Documented for every call and explained for none: perhaps another call is under way.
    return reply.status === 409 ? { ...reply, is: 'in doubt' } : contactIn('created', reply, reply.json?.id)
  },
  refusesAddress: ({ status, json }) =>
    (status === 400 && /^(?:email_invalid|email_blocked|subscriber_suppressed)$/.test(json?.code)) ||
    (status === 422 && json?.detail?.[0]?.loc?.includes?.('email_address')),

  notifies: ({ BUTTONDOWN_EMAIL_ID: mail }) => mail !== undefined,
  notify({ id, contact: { email, providerId } }, { settings, post }) {
    const mail = encodeURIComponent(settings.BUTTONDOWN_EMAIL_ID!)
    const path = `/v1/subscribers/${encodeURIComponent(providerId ?? email)}/emails/${mail}`
    return post('send a mail', path, undefined, { 'x-idempotency-key': id })
  },

  remove(email, { send }) {
    const path = `/v1/subscribers/${encodeURIComponent(email)}`
    return send({ action: 'delete a subscriber', method: 'DELETE', path })
  },
}
