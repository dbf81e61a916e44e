import { createHash } from 'node:crypto'
import { address, optional, required, shaped, withDefault, word, yesOrNo } from '../config/readers.ts'
import { contactIn, names, splitName, type Vendor } from './vendor.ts'

const settings = {
  MAILCHIMP_API_KEY: required(
    shaped(/^[\x21-\x7E]{1,100}-[a-z]{2,4}\d{1,3}$/, 'must end with its data centre, such as -us21'),
    'API key; the part after the dash names the data centre.',
    'Mailchimp: Account & billing, Extras, API keys.',
  ),
  MAILCHIMP_AUDIENCE_ID: required(word, 'Audience that holds the list.', 'Mailchimp: Audience, Settings, Audience ID.'),
  MAILCHIMP_DOUBLE_OPT_IN: withDefault(yesOrNo, 'false', 'Whether Mailchimp asks the contact to confirm.'),
  MAILCHIMP_TAGS: optional(names, 'Tags to give to the contact; new ones are made.', 'Mailchimp: Audience, Tags.'),
  MAILCHIMP_BASE_URL: optional(address, 'Address of the API, instead of the one of the data centre.', 'Leave it.'),
}

const audience = (values: { readonly MAILCHIMP_AUDIENCE_ID: string }): string =>
  `/3.0/lists/${encodeURIComponent(values.MAILCHIMP_AUDIENCE_ID)}`

/** MD5 only identifies the member; it protects nothing. */
const hashOf = (email: string): string => createHash('md5').update(email).digest('hex')

/**
 * https://mailchimp.com/developer/marketing/api: a creation answers with 200, or with a 400 titled "Member Exists" if the
 * audience has, or had, the address. A member is identified by its contact id or by a hash of its address.
 */
export const mailchimp: Vendor<typeof settings> = {
  title: 'Mailchimp',
  settings,
  repeatable: 0,
  namesEvents: true,
  connect: ({ MAILCHIMP_API_KEY: key, MAILCHIMP_BASE_URL: url }) => ({
    base: url ?? `https://${key.slice(key.lastIndexOf('-') + 1)}.api.mailchimp.com`,
    headers: { authorization: `Basic ${Buffer.from(`user:${key}`).toString('base64')}` },
  }),
  check: values => [`${audience(values)}?fields=id`],

  async create({ name, email, createdAt }, { settings, post }) {
    const { first, last } = splitName(name)
    const body = {
      email_address: email,
      status: settings.MAILCHIMP_DOUBLE_OPT_IN ? 'pending' : 'subscribed',
      merge_fields: { FNAME: first, LNAME: last },
      timestamp_signup: `${createdAt.toISOString().slice(0, 19)}+00:00`,
      tags: settings.MAILCHIMP_TAGS,
    }
    // Otherwise merge fields that the owner requires, and that our form lacks, would refuse everybody.
    const path = `${audience(settings)}/members?skip_merge_validation=true`
    const reply = await post('add a member', path, body)
    if (reply.status === 400 && reply.json?.title === 'Member Exists') return { is: 'existing' }
    return contactIn('created', reply, reply.json?.contact_id ?? reply.json?.id)
  },
  // The first two were members once, and only they themselves can come back.
  refusesAddress: ({ status, json }) =>
    status === 400 &&
    (/^(?:Forgotten Email Not Subscribed|Member In Compliance State)$/.test(json?.title) ||
      /\b(?:looks fake or invalid|valid email address|contain a single @)/i.test(json?.detail)),

  notify({ name, contact: { email, providerId }, code }, { settings, post }) {
    const member = encodeURIComponent(providerId ?? hashOf(email))
    const body = { name, ...(code !== undefined && { properties: { code } }) }
    return post('send an event', `${audience(settings)}/members/${member}/events`, body)
  },

  /** To delete a member only archives it. */
  remove: (email, { settings, post }) =>
    post('delete a member', `${audience(settings)}/members/${hashOf(email)}/actions/delete-permanent`),
}
