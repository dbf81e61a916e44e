import { type Attempt, attempting } from '../outbound/attempt.ts'
import { type Caller, caller } from '../outbound/caller.ts'
import { inDoubt } from '../outbound/reply.ts'
import { type Contact, EMAIL_PATTERN, emailKey, newsKinds } from '../signup/contact.ts'
import type { Creation, Provider } from '../waitlist/ports/provider.ts'
import type { Choice } from './settings.ts'
import type { Connect, VendorCaller } from './vendor.ts'
import { Answer } from './vendor-client.ts'

/** Milliseconds. Many vendors do not recognise a second start, so a slow answer is worth waiting for. */
const AUTOMATION_TIMEOUT = 20_000
/** Milliseconds for a check, which may take many calls at the vendor's pace. */
const LONGEST_CHECK = 30_000

export interface ProviderOptions {
  /** Milliseconds for one attempt from its first call, far less than the lease. */
  readonly timeout: number
  /** The same for a start of the automation, for which no visitor waits. */
  readonly automationTimeout?: number | undefined
  /** Whether contacts that the vendor knew before join the lists and tags that the settings name. */
  readonly existing?: 'leave' | 'join'
}

/** Opens no connection yet. */
export function openProvider(
  { name, vendor, settings, fields }: Choice,
  { timeout, automationTimeout = AUTOMATION_TIMEOUT, existing = 'leave' }: ProviderOptions,
): Provider {
  const { rate, promises } = vendor
  const callers: Caller[] = []
  const connect: Connect = ({ means, ...callerSettings }) => {
    const made = caller({ rate, ...callerSettings })
    callers.push(made)
    const call: VendorCaller['call'] = async (call, attempt) => new Answer(await made.call(call, attempt), means)
    return {
      call,
      get: (to, path, attempt, query) => call({ to, method: 'GET', path, ...(query && { query }) }, attempt),
      post: (to, path, body, attempt) => call({ to, method: 'POST', path, body }, attempt),
    }
  }
  const client = vendor.client(settings, connect, fields)
  const { join, joinsLast = false, automation, check } = client

  async function createContact(contact: Contact, doubt: boolean, attempt: Attempt): Promise<Creation> {
    const creation = await client.createContact(contact, doubt, attempt)
    if (creation.is !== 'created' && creation.is !== 'existing') return creation
    const isOurs = creation.is === 'created' || (doubt && creation.ours !== false)
    const joins = isOurs ? joinsLast : existing === 'join'
    if (!joins || join === undefined) return creation
    const failure = await join({ ...contact, providerId: creation.providerId }, attempt)
    if (failure === null) return creation
    if (isOurs) return inDoubt(failure)
    if (failure.is === 'refused') return creation
    // The contact was there before, so a repetition cannot be taken for its creation.
    return failure.is === 'unclear' ? { ...failure, is: 'unreached' } : failure
  }

  return {
    name,
    timeout,
    createContact(contact, doubt, signal, mayBegin, forVisitor = true) {
      const create = (attempt: Attempt) => createContact(lowerCase(contact), doubt, attempt)
      return attempting(timeout, signal, create, mayBegin, forVisitor ? 'visitor' : 'backlog')
    },
    automation: automation && {
      name: `${name}-automation`,
      events: promises.namesEvents ? newsKinds : ['joined'],
      repeatable: promises.repeatable ?? 0,
      timeout: automationTimeout,
      concurrency: Math.min(rate.connections, 8),
      deliver({ contact, ...event }, signal, mayBegin) {
        const start = (attempt: Attempt) => automation({ ...event, contact: lowerCase(contact) }, attempt)
        return attempting(automationTimeout, signal, start, mayBegin)
      },
    },
    async remove(email, signal) {
      // In a path it could name somebody by an id, or all of them.
      if (!isAddress.test(email)) return { is: 'absent' }
      const erase = (attempt: Attempt) => client.remove(emailKey(email), attempt)
      // The operator waits for it like a visitor.
      return attempting(timeout, signal, erase, undefined, 'visitor')
    },
    check: signal => attempting(LONGEST_CHECK, signal, check, undefined, 'visitor'),
    async close() {
      await Promise.all(callers.map(each => each.close()))
    },
  }
}

const isAddress = new RegExp(`^${EMAIL_PATTERN}$`)

/** Some vendors compare addresses with their case, and would keep the same address twice. */
const lowerCase = (contact: Contact): Contact => ({ ...contact, email: emailKey(contact.email) })
