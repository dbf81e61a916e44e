import { type Loop, loop } from './loop.ts'
import type { Conclusion, Creation, Log, Provider, Registration, Store } from './ports.ts'
import { untilNextRegistration, untilNextTurn } from './retry.ts'

/** What came of asking the provider. */
export type Registered =
  | { readonly is: 'new'; readonly contactId?: string }
  | { readonly is: 'known'; readonly contactId?: string }
  /** The signup is stored, and is completed in the background. */
  | { readonly is: 'kept'; readonly because: 'unreachable' | 'misconfigured' }
  | { readonly is: 'refused'; readonly reason: string }

/**
 * The state machine of a pending contact. An attempt begins by storing "in doubt" with the lease, so that a crash at any
 * moment leaves the truth behind: what began and was not concluded may have taken effect.
 *
 * | the provider says        | in doubt before | the contact           | event | in doubt after | the visitor hears         |
 * |--------------------------|-----------------|-----------------------|-------|----------------|---------------------------|
 * | created                  | either          | is listed             | yes   | –              | new                       |
 * | existing                 | no              | is listed             | no    | –              | known                     |
 * | existing, ours           | yes             | is listed             | yes   | –              | new                       |
 * | existing, not ours       | yes             | is listed             | no    | –              | known                     |
 * | existing, cannot tell    | yes             | is listed             | yes   | –              | new                       |
 * | refused                  | either          | is removed            | no    | –              | why the address is refused |
 * | unreached, misconfigured | no / yes        | stays, tried again    | no    | no / yes       | kept                      |
 * | unclear                  | either          | stays, tried again    | no    | yes            | kept                      |
 * | nothing: we died         | either          | stays, when the lease ends | no | yes          | nothing                   |
 */
export function conclude(creation: Creation, { doubt, attempts }: Registration, random: number): Conclusion {
  switch (creation.is) {
    case 'refused':
      return { is: 'refused' }
    case 'created':
    case 'existing': {
      const { is, providerId } = creation
      const added = is === 'created' || (doubt && creation.ours !== false)
      return { is: added ? 'created' : 'existing', ...(providerId === undefined ? {} : { providerId }) }
    }
    case 'unclear':
    case 'unreached':
    case 'misconfigured': {
      const { is, why } = creation
      const retryAfter = 'retryAfter' in creation ? creation.retryAfter : undefined
      if (isUncalled(creation)) {
        return { is: 'pending', wait: untilNextTurn('registration', random, retryAfter), doubt, why, uncalled: true }
      }
      const wait = untilNextRegistration(attempts + 1, random, retryAfter)
      return { is: 'pending', wait, doubt: doubt || is === 'unclear', why }
    }
  }
}

const isUncalled = (creation: Creation): boolean => creation.is === 'unreached' && creation.uncalled === true

/** What the visitor hears: the creation, seen with what was concluded of it. */
function registeredOf(creation: Creation, conclusion: Conclusion): Registered {
  switch (conclusion.is) {
    case 'created':
    case 'existing': {
      const { is, providerId } = conclusion
      return { is: is === 'created' ? 'new' : 'known', ...(providerId === undefined ? {} : { contactId: providerId }) }
    }
    case 'pending':
      return { is: 'kept', because: creation.is === 'misconfigured' ? 'misconfigured' : 'unreachable' }
    case 'refused':
      return { is: 'refused', reason: creation.is === 'refused' ? creation.reason : '' }
  }
}

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

/** Milliseconds between two looks at a contact that somebody else is asking about. */
const LOOK = 100
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
/** Attempts in the background at once: few, since visitors wait for the same provider. */
const CONCURRENCY = 4

export function register(parts: RegisterParts): Register {
  const { store, provider, timeout, log, announce, clock = () => performance.now(), random = Math.random } = parts
  let answering = true
  let lastAsked = 0
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
      const what = creation.is === 'misconfigured' ? 'refuses our settings' : 'does not answer'
      if (clock() - (toldAt.get(what) ?? Number.NEGATIVE_INFINITY) < QUIET) return
      toldAt.set(what, clock())
      toldOfOutage = true
      const message = `the provider ${what}: signups are kept and completed later`
      log.error({ provider: provider.name, why: creation.why }, message)
      return
    }
    if (attempts > 0) fruitless = 0
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
    const stored = await store.conclude(registration, conclusion)
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

  async function again(contactId: string, deadline: AbortSignal): Promise<Registered | 'gone'> {
    while (!deadline.aborted) {
      const beginning = await store.begin(contactId, provider.name)
      switch (beginning.is) {
        case 'ours':
          return attempt(beginning.registration, deadline)
        case 'listed':
          return { is: 'known' }
        case 'gone':
          return 'gone'
        case 'taken':
          await new Promise(resolve => setTimeout(resolve, LOOK))
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
    return idle < REST ? [] : store.beginDue(provider.name, 1, idle >= PROBE)
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
