import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '../config/operator.ts'
import { breaker, type OnOutage } from '../delivery/breaker.ts'
import { LONGEST_ATTEMPT } from '../delivery/worker.ts'
import type { Failure } from '../http-client/call.ts'
import type { MailServer } from '../mail/send.ts'
import type { Mailbox } from '../mail/settings.ts'
import { counted, number } from '../operate/output.ts'
import { countListed } from '../store/counts.ts'
import type { Tx } from '../store/database.ts'
import { LEASE } from '../store/outbox.ts'
import type { Store } from '../store/store.ts'

/** A chat, or the owner's mailbox. */
export interface Channel {
  readonly name: string
  /** What people call it, within a sentence. */
  readonly label: string
  /** The minimum between two messages about those who joined, in milliseconds. */
  readonly minInterval: number
  /** Sends one sentence: null when it arrived. Never rejects. */
  send(sentence: string, signal: AbortSignal): Promise<Failure | null>
}

export const TEST_SENTENCE = 'waitlist check: this works'

interface ChannelParts {
  readonly store: Pick<Store, 'transaction' | 'read'>
  readonly log: Log
  readonly onOutage?: OnOutage | undefined
}

const POLL_INTERVAL = 2_000
const LONGEST_PAUSE = 120_000

/**
 * Tells a channel of all who joined and were invited since the last time, in one message. A channel does not recognise a
 * repetition: after a crash one message may be sent again, and says so.
 */
export function channelWorker(channel: Channel, { store, log, onOutage = () => {} }: ChannelParts) {
  const { name, label, minInterval } = channel
  const cutOff = new AbortController()
  const stopping = new AbortController()
  const state = breaker({ name, label, longestPause: LONGEST_PAUSE, log, onOutage })
  let running: Promise<void> | undefined

  /** Sends one message, if it is due and there is something to tell. */
  async function once(): Promise<void> {
    if (state.permits(1) === 0) return
    const digest = await store.transaction(tx => claimDigest(tx, name))
    if (digest === null) return
    state.begin()
    // A message goes without the total rather than not at all.
    const total = await store.read(countListed).catch(() => null)
    const signal = AbortSignal.any([cutOff.signal, AbortSignal.timeout(LONGEST_ATTEMPT)])
    const failure = await channel.send(newsSentence(digest, total), signal)
    if (failure === null) state.succeed()
    else state.fail(failure)
    const isTold = failure === null
    const doubt = !isTold && (digest.doubt || failure.is === 'in doubt')
    await store.transaction(tx => settleDigest(tx, digest, { isTold, wait: isTold ? minInterval : 0, doubt }))
  }

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

/** `total`: contacts on the list; null: they could not be counted. */
function newsSentence({ joined, invited, doubt }: Digest, total: number | null): string {
  const people = (count: number) => counted(count, 'person', 'people')
  const inAll = total === null ? '' : `, ${number(total)} in all`
  const parts = [
    ...(joined === 0 ? [] : [`${people(joined)} joined the waitlist${inAll}`]),
    ...(invited === 0 ? [] : [`${people(invited)} ${invited === 1 ? 'was' : 'were'} invited`]),
  ]
  return `${parts.join('; ')}${doubt ? ' (some of them may have been announced before)' : ''}`
}

const OWNER_INTERVAL = 3_600_000

/**
 * Mails the owner one sentence, as subject and as text. A repeated message also counts those who joined since, so each has
 * an id of its own: mailboxes hide what has the id of an earlier one.
 */
export function ownerMail(server: MailServer, to: Mailbox, service: string | null): Channel {
  return {
    ...{ name: 'owner-mail', label: "the owner's mailbox", minInterval: OWNER_INTERVAL },
    async send(sentence, signal) {
      const text = service === null ? sentence : `${service}: ${sentence}`
      const result = await server.send({ id: `owner_${randomUUID()}`, to, subject: text, text }, signal)
      if (result.is === 'delivered') return null
      return result.is === 'refused' ? { is: 'misconfigured', why: result.why } : result
    },
  }
}

/** Those who joined and were invited since the last message, leased to the holder of the token. */
export interface Digest {
  readonly channel: string
  readonly token: string
  readonly joined: number
  readonly invited: number
  /** Whether an earlier message may have counted some of them. */
  readonly doubt: boolean
  /** Milliseconds since 1970: it counts those until then. */
  readonly until: number
}

/**
 * Milliseconds that a digest ends before now: longer than a transaction lasts, since one that is about to commit has events
 * with the time at which it began.
 */
export const LAG = 10_000

/** A channel has one row, and no contact has any: it keeps until when the channel was told. */
export const openChannel = (tx: Tx, channel: string): Promise<void> =>
  tx.insert(
    'channel',
    [{ name: channel, told_until: tx.now - LAG, next_at: tx.now, token: null }],
    'on conflict (name) do nothing',
  )

/** Leases what the channel is to be told, to one of several instances; null: nothing, or not yet. */
export async function claimDigest(tx: Tx, channel: string): Promise<Digest | null> {
  const [row] = await tx.all<{ told_until: number; token: string | null }>(
    `select told_until, token from channel where name = $1 and next_at <= $2 ${tx.dialect.forUpdate}`,
    [channel, tx.now],
  )
  if (row === undefined) return null
  const until = tx.now - LAG
  const [counts] = await tx.all<{ joined: number; invited: number }>(
    'select (select count(*) from contact where event_at > $1 and event_at <= $2) as joined,' +
      ' (select count(*) from contact where invited_at > $1 and invited_at <= $2) as invited',
    [row.told_until, until],
  )
  const { joined, invited } = counts!
  if (joined + invited === 0) return null
  const token = randomUUID()
  await tx.run('update channel set token = $2, next_at = $3 where name = $1', [channel, token, tx.now + LEASE])
  return { channel, token, joined, invited, doubt: row.token !== null, until }
}

/**
 * Ends an attempt, unless another instance took over the lease. What was not told is in the next digest, after `wait`
 * milliseconds.
 */
export async function settleDigest(
  tx: Tx,
  { channel, token, until }: Digest,
  { isTold, wait, doubt }: { readonly isTold: boolean; readonly wait: number; readonly doubt: boolean },
): Promise<void> {
  await tx.run(
    'update channel set told_until = coalesce($3, told_until), next_at = $4,' +
      ' token = case when $5 = 1 then token end where name = $1 and token = $2',
    [channel, token, isTold ? until : null, tx.now + wait, doubt ? 1 : 0],
  )
}
