import { names, optional, required, shaped, type ValuesOf, withDefault, word, yesOrNo } from '../config/kinds.ts'
import type { Attempt } from '../outbound/attempt.ts'
import type { Failure } from '../waitlist/ports/destination.ts'
import { base, type Connect, type Vendor, type VendorClient } from './vendor.ts'
import { type Answer, isYoungerThanSignup, misconfigured } from './vendor-client.ts'

const settings = {
  BEEHIIV_API_KEY: required(word, 'API key.', 'beehiiv: Settings, API, Create new API key.'),
  BEEHIIV_PUBLICATION_ID: required(
    shaped(/^pub_[\w-]{1,100}$/, 'must begin with pub_'),
    'Publication that holds the list (pub_…).',
    'beehiiv: Settings, API, Publication ID (API V2).',
  ),
  BEEHIIV_TAGS: optional(names, 'Tags to give to the contact; new ones are made.', 'beehiiv: Audience, Tags.'),
  BEEHIIV_SEND_WELCOME_EMAIL: withDefault(yesOrNo, 'false', 'Whether the welcome email of the publication is sent.'),
  BEEHIIV_AUTOMATION_ID: optional(
    word,
    'Automation to start for a new contact (aut_…); it needs the trigger Add by API.',
    'beehiiv: Automations; the id in its address.',
  ),
  BEEHIIV_BASE_URL: base('https://api.beehiiv.com/v2'),
}
type Settings = ValuesOf<typeof settings>

export const beehiiv: Vendor<typeof settings> = {
  title: 'beehiiv',
  settings,
  rate: { calls: 180, per: 60_000, connections: 5 },
  promises: {
    newness: 'best effort',
    scope: 'list',
    recognisesOwn: true,
    repeatable: 0,
    namesEvents: false,
    removal: 'at once',
  },
  client,
}

/**
 * https://developers.beehiiv.com: what a second creation of an address does is not documented, so it is looked up first.
 * Neither is any code of an error, so none can mean the address; beehiiv tries it later, and then calls it invalid there.
 */
function client(settings: Settings, connect: Connect): VendorClient {
  const { BEEHIIV_AUTOMATION_ID: automation, BEEHIIV_TAGS: tags } = settings
  const publication = `/publications/${encodeURIComponent(settings.BEEHIIV_PUBLICATION_ID)}`
  const automationPath = automation && `${publication}/automations/${encodeURIComponent(automation)}`
  const { call, get, post } = connect({
    base: settings.BEEHIIV_BASE_URL,
    headers: { authorization: `Bearer ${settings.BEEHIIV_API_KEY}` },
    waitFields: ['retry-after', 'ratelimit-reset'],
  })

  async function checkAutomation(path: string, attempt: Attempt): Promise<Failure | null> {
    const reply = await get('look at the automation', path, attempt)
    const triggers = reply.list('data', 'trigger_events')
    if (triggers === undefined) return reply.failure
    const isOn = ['live', 'running'].includes(reply.text('data', 'status') ?? '')
    return isOn && triggers.includes('api')
      ? null
      : misconfigured('look at the automation: it is not live with the trigger "Add by API"')
  }

  function find(email: string, attempt: Attempt): Promise<Answer> {
    return get('find a subscription', `${publication}/subscriptions/by_email/${encodeURIComponent(email)}`, attempt)
  }

  async function checkPublication(attempt: Attempt): Promise<Failure | null> {
    const reply = await get('look at the publication', publication, attempt)
    return reply.status === 200 && reply.id('data', 'id') !== undefined ? null : reply.failure
  }

  return {
    async createContact(contact, _doubt, attempt) {
      const { email } = contact
      const found = await find(email, attempt)
      const foundId = found.id('data', 'id')
      if (found.status === 200 && foundId !== undefined) {
        const ours = isYoungerThanSignup(timeOf(found.at('data', 'created')), contact)
        return { is: 'existing', providerId: foundId, ours }
      }
      // An unknown publication is a 404 too, and answers the creation with another one.
      if (found.status !== 404) return found.failure

      const body = { email, send_welcome_email: settings.BEEHIIV_SEND_WELCOME_EMAIL || undefined }
      const reply = await post('create a subscription', `${publication}/subscriptions`, body, attempt)
      const providerId = reply.id('data', 'id')
      return reply.ok && providerId !== undefined ? { is: 'created', providerId } : reply.failure
    },

    /** The tags come beside those that the subscription has. */
    joinsLast: true,
    join:
      tags &&
      (async ({ providerId }, attempt) => {
        // Creation and look-up both tell it.
        const path = `${publication}/subscriptions/${encodeURIComponent(providerId!)}/tags`
        const reply = await post('add tags', path, { tags }, attempt)
        return reply.ok && reply.id('data', 'id') !== undefined ? null : reply.refusal
      }),

    automation:
      automationPath === undefined
        ? null
        : async ({ contact: { email, providerId } }, attempt) => {
            const path = `${automationPath}/journeys`
            const body = providerId === undefined ? { email } : { subscription_id: providerId }
            const reply = await post('start the automation', path, body, attempt)
            const started = reply.ok && reply.id('data', 'id') !== undefined
            return reply.deliveredIf(started)
          },

    async remove(email, attempt) {
      const found = await find(email, attempt)
      // An unknown publication is a 404 too.
      if (found.status === 404) return (await checkPublication(attempt)) ?? { is: 'absent' }
      const id = found.id('data', 'id')
      const isTheirs = found.text('data', 'email')?.toLowerCase() === email
      if (found.status !== 200 || id === undefined || !isTheirs) return found.failure
      const path = `${publication}/subscriptions/${encodeURIComponent(id)}`
      const reply = await call({ to: 'delete a subscription', method: 'DELETE', path, statusAlone: true }, attempt)
      return reply.removedIf(reply.status === 204)
    },

    async check(attempt) {
      return (
        (await checkPublication(attempt)) ??
        (automationPath === undefined ? null : await checkAutomation(automationPath, attempt))
      )
    },
  }
}

/** Its times are seconds since 1970. */
const timeOf = (created: unknown): string | undefined =>
  typeof created === 'number' ? new Date(created * 1_000).toString() : undefined
