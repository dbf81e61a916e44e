import { createHmac } from 'node:crypto'
import { address, optional, required, word } from '../config/readers.ts'
import { contactIn, idOf, names, query, type Vendor } from './vendor.ts'

const settings = {
  GHOST_BASE_URL: required(address, 'Address of the site, without /ghost.', 'Ghost: Settings, Integrations, API URL.'),
  GHOST_ADMIN_API_KEY: required(word, 'Admin API key.', 'Ghost: Settings, Integrations, Add custom integration.'),
  GHOST_LABELS: optional(names, 'Labels to give to the member; new ones are made.', 'Ghost: Members, Filter, Label.'),
}

/** A JSON Web Token (RFC 7519) that begins now and lasts for as long as Ghost takes one: 5 minutes. */
function token(key: string): string {
  const [kid = '', secret = ''] = key.split(':')
  const now = Math.floor(Date.now() / 1000)
  const parts = [
    { alg: 'HS256', typ: 'JWT', kid },
    { iat: now, exp: now + 300, aud: '/admin/' },
  ]
  const signed = parts.map(part => Buffer.from(JSON.stringify(part)).toString('base64url')).join('.')
  return `${signed}.${createHmac('sha256', Buffer.from(secret, 'hex')).update(signed).digest('base64url')}`
}

/**
 * https://docs.ghost.org/admin-api and the source, https://github.com/TryGhost/Ghost, whose messages are in English.
 * There is nothing to start: welcome mails and automations are for those who sign up on the site itself.
 */
export const ghost: Vendor<typeof settings> = {
  title: 'Ghost',
  settings,
  repeatable: 0,
  namesEvents: false,
  // Made for each attempt, since the token ends.
  connect: ({ GHOST_BASE_URL, GHOST_ADMIN_API_KEY }) => ({
    base: `${GHOST_BASE_URL}/ghost/api/admin`,
    headers: { 'accept-version': 'v6.0', authorization: `Ghost ${token(GHOST_ADMIN_API_KEY)}` },
  }),
  check: () => ['/members/?limit=1&fields=id'],

  async create({ id, name, email }, { settings, post }) {
    const member = {
      email,
      // Ghost takes no name that begins with a comma.
      name: name.replace(/^[,\s]+/, ''),
      note: `waitlist ${id}`,
      labels: settings.GHOST_LABELS,
    }
    const reply = await post('create a member', '/members/', { members: [member] })
    const isKnown = /^Attempting to add member with existing email/.test(reply.json?.errors?.[0]?.context)
    return isKnown ? { is: 'existing' } : contactIn('created', reply, reply.json?.members?.[0]?.id)
  },
  refusesAddress: ({ status, json }) =>
    status === 422 && /^(?:Invalid Email|Validation failed for email\.)$/.test(json?.errors?.[0]?.context),

  async remove(email, { get, send }) {
    const filter = `email:'${email.replaceAll(/['"]/g, '\\$&')}'`
    const found = await get('find a member', `/members/${query({ filter })}`)
    if (found.is !== 'ok' || !Array.isArray(found.json?.members)) return found
    const id = idOf(found.json.members[0]?.id)
    if (id === undefined) return { is: 'absent' }
    return send({ action: 'delete a member', method: 'DELETE', path: `/members/${encodeURIComponent(id)}/` })
  },
}
