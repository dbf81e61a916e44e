import type { Failure } from '../../../src/waitlist/ports/failure.ts'
import type { Time } from './time.ts'

/** Everything that can happen to a call on its way, but an answer. "before" and "after" are about its effect. */
export const troubles = [
  'unreached',
  'asked to wait',
  'misconfigured',
  'unclear before',
  'unclear after',
  'unclear, effect later',
  'hang before',
  'hang after',
] as const
export type Trouble = (typeof troubles)[number]

/** The line to somebody outside. Carries calls there and answers back, unless it is told otherwise. */
export interface Line {
  /** Happens to these, one to each of the next calls. */
  next(...what: readonly Trouble[]): void
  /** Happens to every call until it is null. */
  always(what: Trouble | null): void
  /** Nothing will happen to the next call. */
  isClear(): boolean
  /** Whether anybody was asked to wait. */
  hasAskedToWait(): boolean
  /** `about`: the address or event; two calls about one at the same time are a fault. */
  carry<Answer>(about: string, leave: AbortSignal, effect: () => Answer): Promise<Answer | Failure>
  /** Effects that are still on their way happen now. */
  arrive(): void
}

/** What happened, for the verdict: `seen` counts edges, `fault` is a broken promise. */
export interface Witness {
  seen(edge: string): void
  fault(what: string): void
}

/** Milliseconds there and back: long enough that others get between. */
const LATENCY = 20
/** What the other side asks for when it asks to wait. */
export const ASKED_TO_WAIT = 30 * 60_000

/** `timeout`: milliseconds after which a call that hangs is given up. */
export function line(name: string, time: Time, { seen, fault }: Witness, timeout: number): Line {
  let planned: Trouble[] = []
  let lasting: Trouble | null = null
  const onTheWay: (() => void)[] = []
  const underWay = new Set<string>()
  let asked = false

  const unclear: Failure = { is: 'unclear', why: 'no answer' }
  const over = (leave: AbortSignal) =>
    new Promise<void>(resolve => {
      if (leave.aborted) resolve()
      else leave.addEventListener('abort', () => resolve())
      void time.pause(timeout).then(resolve)
    })

  async function travel<Answer>(leave: AbortSignal, effect: () => Answer): Promise<Answer | Failure> {
    const trouble = planned.shift() ?? lasting
    if (trouble === null) {
      const answer = effect()
      await time.pause(LATENCY)
      return leave.aborted ? unclear : answer
    }
    seen(`${name}: ${trouble}`)
    if (trouble === 'unclear after' || trouble === 'hang after') effect()
    if (trouble === 'unclear, effect later') onTheWay.push(effect)
    await (trouble.startsWith('hang') ? over(leave) : time.pause(LATENCY))
    if (trouble === 'unreached') return { is: 'unreached', why: 'nobody there' }
    if (trouble === 'asked to wait') {
      asked = true
      return { is: 'unreached', why: 'too many', retryAfter: ASKED_TO_WAIT }
    }
    return trouble === 'misconfigured' ? { is: 'misconfigured', why: 'wrong key' } : unclear
  }

  return {
    next: (...what) => {
      planned = [...what]
    },
    always: what => {
      lasting = what
    },
    isClear: () => planned.length === 0 && lasting === null,
    hasAskedToWait: () => asked,
    async carry(about, leave, effect) {
      if (leave.aborted) return { is: 'unreached', why: 'too late' }
      if (underWay.has(about)) fault(`two calls about ${about} to the ${name} at the same time`)
      underWay.add(about)
      try {
        return await travel(leave, effect)
      } finally {
        underWay.delete(about)
      }
    },
    arrive() {
      for (const effect of onTheWay.splice(0)) effect()
    },
  }
}
