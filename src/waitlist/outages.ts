import type { Channel, Refusal, Store } from './ports.ts'

type State = Refusal | 'answering'

export interface OutagesParts {
  readonly store: Pick<Store, 'takeTurn'>
  readonly channels: readonly Channel[]
  /** What people call the provider. */
  readonly provider: string
  /** Aborted when the process stops. */
  readonly leave: AbortSignal
}

/** Milliseconds in which only one of several instances says the same. Each of them notices an outage for itself. */
const SAME = 60_000

/**
 * Tells channels that an outage of the provider began, and that it ended. That is news and no delivery: it is tried once,
 * and forgotten when that fails, since the log has it too; a message that may have arrived counts as told. What changes
 * while a message is on its way is told after it.
 */
export function outages({ store, channels, provider, leave }: OutagesParts): (to: State) => void {
  async function tellOnce(channel: Channel, is: State): Promise<boolean> {
    // A store that is out is no reason to say nothing.
    const isOurs = await store.takeTurn(`${channel.name} ${is}`, SAME).catch(() => true)
    if (!isOurs) return true
    const told = await channel.tell({ is, provider }, leave)
    return told.is === 'delivered' || told.is === 'unclear'
  }
  const tell = channels.map(channel => teller(is => tellOnce(channel, is)))
  return to => {
    for (const each of tell) each(to)
  }
}

/** `tell` says whether it arrived. */
function teller(tell: (to: State) => Promise<boolean>): (to: State) => void {
  let told: State = 'answering'
  let latest: State = told
  let telling = false

  async function catchUp(): Promise<void> {
    telling = true
    while (latest !== told) {
      const to = latest
      if (await tell(to)) told = to
      // If nobody heard of the beginning, nobody has to hear of the end.
      else if (latest === to) latest = told
    }
    telling = false
  }

  return to => {
    latest = to
    if (!telling) void catchUp()
  }
}
