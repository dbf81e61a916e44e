import { conclude, isUncalled, type Registered, registeredOf } from './conclude.ts'
import { type Loop, loop } from './loop.ts'
import {
  type Conclusion,
  type Creation,
  type Log,
  type Provider,
  type Registration,
  type Store,
  StoreUnavailable,
} from './ports.ts'

export interface RegisterParts {
  readonly store: Store
  readonly provider: Provider
  /** Milliseconds for one attempt. */
  readonly timeout: number
  readonly log: Log
  /** Called when an event was born. */
  readonly announce: () => void
  /** Milliseconds that only grow. */
  readonly clock?: () => number
  /** From 0 to 1. */
  readonly random?: () => number
}

export interface Register {
  /** Tells the provider and concludes. Rejects only when the store does. */
  attempt(registration: Registration, deadline: AbortSignal): Promise<Registered>
  /** For a contact that is pending already: waits for whoever is asking, or asks. 'gone': there is no such contact. */
  again(contactId: string, deadline: AbortSignal): Promise<Registered | 'gone'>
  /** Completes what is pending. */
  readonly background: Loop
}

/** Milliseconds between two looks at a contact that somebody else is asking about: more and more, up to a second. */
const LOOK = 100
const LONGEST_LOOK = 1_000
/** Milliseconds between two looks at what is due. */
const REST = 1_000
/** While the provider does not answer, it is asked about one contact this often, due or not. */
const PROBE = 10_000
/** When it answers again, all that waits is due, at most this often. */
const HASTEN = 15_000
/**
 * Some contacts fail always, and each time that looks like an outage with its end. When so many times in a row a contact
 * failed again at once, all that waits is made due less and less often, up to once an hour.
 */
const FRUITLESS = 3
const RARELY_HASTEN = 3_600_000
/** Each kind of outage is told at once, then this often at most, even where it comes and goes with every call. */
const QUIET = 60_000
/** Attempts to store what the provider said, a second apart: about as long as the lease. */
const CONCLUDE_AGAIN = 30
/** Attempts in the background at once: few, since visitors wait for the same provider. */
const CONCURRENCY = 4

export function register(parts: RegisterParts): Register {
  const { store, provider, timeout, log, announce, clock = () => performance.now(), random = Math.random } = parts
  let answering = true
  let lastAsked = 0
  /** Before, nobody is asked who is not due: the provider said for how long it wants to be left alone. */
  let probeFrom = 0
  // Whoever starts the service may just have mended what kept contacts waiting.
  let hasten = true
  let lastHastened = Number.NEGATIVE_INFINITY
  let justHastened = false
  let fruitless = 0
  const toldAt = new Map<string, number>()
  let toldOfOutage = false

  /** Keeps in mind whether the provider answers, and says so when that changes. */
  function note(creation: Creation, attempts: number): void {
    if (isUncalled(creation)) return
    if (creation.is === 'unclear' || creation.is === 'unreached' || creation.is === 'misconfigured') {
      if (answering && attempts > 0 && justHastened) {
        justHastened = false
        fruitless++
      }
      answering = false
      probeFrom = clock() + ('retryAfter' in creation ? (creation.retryAfter ?? 0) : 0)
      const what = creation.is === 'misconfigured' ? 'refuses our settings' : 'does not answer'
      if (clock() - (toldAt.get(what) ?? Number.NEGATIVE_INFINITY) < QUIET) return
      toldAt.set(what, clock())
      toldOfOutage = true
      const message = `the provider ${what}: signups are kept and completed later`
      log.error({ provider: provider.name, why: creation.why }, message)
      return
    }
    if (attempts > 0) {
      fruitless = 0
      // It had failed, perhaps in another instance, and then others have that this one knows nothing of.
      hasten = true
    }
    if (answering) return
    answering = true
    hasten = true
    background.wake()
    if (toldOfOutage) log.info({ provider: provider.name }, 'the provider answers again: what waited is completed now')
    toldOfOutage = false
  }

  async function attempt(registration: Registration, deadline: AbortSignal): Promise<Registered> {
    lastAsked = clock()
    const creation = await provider.createContact(registration.contact, registration.doubt, deadline)
    note(creation, registration.attempts)
    const conclusion = conclude(creation, registration, random())
    const stored = await concluded(registration, conclusion)
    // The lease was lost: this process slept for longer than that. Whoever has it now concludes.
    if (!stored) return { is: 'kept', because: 'unreachable' }
    if (conclusion.is === 'created') announce()
    if (conclusion.is === 'refused' && registration.attempts > 0) {
      const { id } = registration.contact
      const why = creation.is === 'refused' ? creation.reason : ''
      log.warn(
        { provider: provider.name, contact: id, why },
        'the provider refuses an address that was kept for it: the signup is dropped',
      )
    }
    return registeredOf(creation, conclusion)
  }

  /** What the provider said must not be forgotten with the visitor, who is not kept waiting for a store that is away. */
  async function concluded(registration: Registration, conclusion: Conclusion): Promise<boolean> {
    try {
      return await store.conclude(registration, conclusion)
    } catch (error) {
      if (error instanceof StoreUnavailable) concludeLater(registration, conclusion, CONCLUDE_AGAIN)
      throw error
    }
  }

  function concludeLater(registration: Registration, conclusion: Conclusion, left: number): void {
    const timer = setTimeout(() => {
      store.conclude(registration, conclusion).then(
        stored => {
          if (stored && conclusion.is === 'created') announce()
        },
        error => {
          if (error instanceof StoreUnavailable && left > 1) concludeLater(registration, conclusion, left - 1)
        },
      )
    }, REST)
    timer.unref()
  }

  async function again(contactId: string, deadline: AbortSignal): Promise<Registered | 'gone'> {
    for (let look = LOOK; !deadline.aborted; look = Math.min(2 * look, LONGEST_LOOK)) {
      const beginning = await store.begin(contactId, provider.name)
      switch (beginning.is) {
        case 'ours':
          return attempt(beginning.registration, deadline)
        case 'listed':
          return { is: 'known' }
        case 'gone':
          return 'gone'
        case 'taken':
          await new Promise(resolve => setTimeout(resolve, look))
      }
    }
    return { is: 'kept', because: 'unreachable' }
  }

  async function take(most: number): Promise<readonly Registration[]> {
    const pause = Math.min(HASTEN * 2 ** Math.max(0, fruitless - FRUITLESS), RARELY_HASTEN)
    if (hasten && clock() - lastHastened >= pause) {
      // First, since the provider may answer again meanwhile.
      hasten = false
      await store.hasten().catch(error => {
        hasten = true
        throw error
      })
      lastHastened = clock()
      justHastened = true
    }
    if (answering) return store.beginDue(provider.name, most, false)
    const idle = clock() - lastAsked
    return idle < REST ? [] : store.beginDue(provider.name, 1, idle >= PROBE && clock() >= probeFrom)
  }

  const background = loop<Registration>({
    take,
    do: (registration, deadline) =>
      attempt(registration, deadline).then(
        () => {},
        error => log.error({ why: String(error) }, 'what the provider said was not stored'),
      ),
    concurrency: CONCURRENCY,
    timeout,
    rest: REST,
    failed: error => log.error({ why: String(error) }, 'what is pending cannot be read'),
  })

  return { attempt, again, background }
}
