import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../config/operator.ts'
import { breaker, type Outage } from '../delivery/breaker.ts'
import type { Failure } from '../http-client/call.ts'
import { deadline } from '../http-client/deadline.ts'
import { countListed } from '../store/counts.ts'
import type { Store } from '../store/store.ts'
import { claimDigest, type Digest, openChannel, settleDigest } from './cursor.ts'
import { newsSentence } from './sentences.ts'

/** A chat, or the owner's mailbox. */
export interface Channel {
  readonly name: string
  /** What people call it, within a sentence. */
  readonly label: string
  /** The minimum between two messages about those who joined, in milliseconds. */
  readonly minInterval: number
  /** Sends one sentence: null when it arrived. Never rejects. */
  send(sentence: string, signal: AbortSignal): Promise<Failure | null>
  close(): Promise<void>
}

export const TEST_SENTENCE = 'waitlist check: this works'

interface ChannelParts {
  readonly store: Pick<Store, 'transaction' | 'read'>
  readonly log: Log
  readonly onOutage?: ((outage: Outage | null, why: string) => void) | undefined
}

const POLL_INTERVAL = 2_000
const LONGEST_PAUSE = 120_000
/** Milliseconds for one message, well within its lease. */
const LONGEST_ATTEMPT = 40_000

/**
 * Tells a channel of all who joined and were invited since the last time, in one message. A channel does not recognise a
 * repetition: after a crash one message may be sent again, and says so.
 */
export function channelWorker(channel: Channel, { store, log, onOutage }: ChannelParts) {
  const { name, label, minInterval } = channel
  const cutOff = new AbortController()
  const stopping = new AbortController()
  let running: Promise<void> | undefined
  /** What `claimDigest` said of the next message. */
  let dueAt = Number.NEGATIVE_INFINITY

  const state = breaker(LONGEST_PAUSE, (outage, why) => {
    if (outage === null) log.info({ destination: name }, `${label} answers again`)
    else log.error({ destination: name, why }, `${label} does not take our messages: they are kept`)
    onOutage?.(outage, why)
  })

  /** Sends one message, if it is due and there is something to tell. */
  async function once(): Promise<void> {
    if (performance.now() < dueAt || state.permits(1) === 0) return
    const digest = await store.transaction(tx => claimDigest(tx, name))
    if (typeof digest === 'number') dueAt = performance.now() + digest
    if (digest === null || typeof digest === 'number') return
    state.begin()
    const sentence = newsSentence({ ...digest, total: await total() })
    const failure = await channel.send(sentence, deadline(LONGEST_ATTEMPT, cutOff.signal))
    if (failure === null) state.succeed()
    else state.fail(failure)
    await store.transaction(tx => settleDigest(tx, digest, settlementOf(digest, failure)))
  }

  function settlementOf(digest: Digest, failure: Failure | null) {
    if (failure === null) return { until: digest.until, wait: minInterval, doubt: false }
    return { until: null, wait: 0, doubt: digest.doubt || failure.is === 'in doubt' }
  }

  /** A message goes without the total rather than not at all. */
  const total = (): Promise<number | null> => store.read(countListed).catch(() => null)

  async function run(): Promise<void> {
    const { signal } = stopping
    while (!signal.aborted) {
      await once().catch(error => log.warn({ destination: name, why: String(error) }, 'a channel was not told'))
      await sleep(POLL_INTERVAL, undefined, { signal }).catch(() => {})
    }
  }

  return {
    ...{ name, once },
    start(): void {
      running ??= run()
    },
    breaker: { outage: state.outage },
    /** Opens the channel: it counts only those who come from now on. */
    open: () => store.transaction(tx => openChannel(tx, name)),
    /** Resolves when nothing is in flight. After `grace` milliseconds it aborts what is. */
    async stop(grace: number): Promise<void> {
      stopping.abort()
      const aborting = setTimeout(() => cutOff.abort(), grace)
      await running
      clearTimeout(aborting)
    },
  }
}
