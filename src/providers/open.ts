import { type Creation, type Provider, resultOf } from '../delivery/destination.ts'
import { call, deadline, failureOf } from '../http-client/call.ts'
import { type Contact, emailKey, isEmail } from '../signup/contact.ts'
import { automatedEvents, type Choice } from './list.ts'
import type { Api } from './vendor.ts'

/** Milliseconds for one attempt, all of its calls together. A visitor waits for a creation. */
const TIMEOUT = 8_000
/** Many vendors do not recognise a second start, so a slow answer is worth waiting for. */
const AUTOMATION_TIMEOUT = 20_000
const CHECK_TIMEOUT = 30_000

export function openProvider(choice: Choice): Provider {
  const { name, vendor, settings, fields } = choice
  const events = automatedEvents(choice)
  const secrets = Object.entries(settings).flatMap(([key, value]) => (/KEY|TOKEN/.test(key) ? String(value) : []))

  /** The calls of an attempt that begins now. */
  function attempt(milliseconds: number, stop: AbortSignal): Api {
    const signal = deadline(milliseconds, stop)
    const { base, headers } = vendor.connect(settings)
    const send: Api['send'] = ({ path, ...request }) =>
      call({ ...request, url: base + path, headers: { ...headers, ...request.headers }, secrets, signal })
    return {
      ...{ settings, fields, send },
      get: (action, path) => send({ action, method: 'GET', path }),
      post: (action, path, body, headers = {}) => send({ action, method: 'POST', path, body, headers }),
    }
  }

  async function create(contact: Contact, inDoubt: boolean, stop: AbortSignal): Promise<Creation> {
    const api = attempt(TIMEOUT, stop)
    const creation = await vendor.create(contact, api)
    if ('status' in creation) {
      const isInvalid = vendor.refusesAddress?.(creation)
      return isInvalid ? { is: 'refused', reason: 'it is not valid there' } : failureOf(creation)
    }
    const { is, providerId } = creation
    // An attempt in doubt may have created what exists.
    if (is === 'existing' && (!inDoubt || creation.hasLeft)) return creation
    const reply = (await vendor.complete?.({ ...contact, providerId }, api)) ?? null
    // The contact exists by now.
    if (reply !== null && reply.is !== 'ok') return { is: 'in doubt', why: reply.why }
    return { is: 'created', providerId }
  }

  return {
    name,
    timeout: TIMEOUT,
    create: (contact, inDoubt, stop) => create(lowerCase(contact), inDoubt, stop),
    automation:
      events.length === 0
        ? null
        : {
            name: `${name}-automation`,
            events,
            repeatable: vendor.repeatable,
            concurrency: 8,
            async deliver({ contact, ...event }, stop) {
              const api = attempt(AUTOMATION_TIMEOUT, stop)
              return resultOf(await vendor.notify!({ ...event, contact: lowerCase(contact) }, api))
            },
          },
    async remove(email, stop) {
      // In a path it could name somebody by an id, or all of them.
      if (!isEmail(email)) return { is: 'absent' }
      const removal = await vendor.remove(emailKey(email), attempt(TIMEOUT, stop))
      if (!('status' in removal)) return removal
      if (removal.status === 404) return { is: 'absent' }
      // A look-up removes nobody.
      return removal.is === 'ok' && !removal.safe ? { is: 'removed' } : failureOf(removal)
    },
    async check(stop) {
      const { get } = attempt(CHECK_TIMEOUT, stop)
      for (const path of vendor.check(settings)) {
        const reply = await get(`look at ${path}`, path)
        if (reply.is !== 'ok') return failureOf(reply)
      }
      return null
    },
  }
}

/** Some vendors compare addresses with their case, and would keep the same address twice. */
const lowerCase = (contact: Contact): Contact => ({ ...contact, email: emailKey(contact.email) })
