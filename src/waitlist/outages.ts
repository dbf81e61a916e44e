import type { Channel, Refusal } from './ports.ts'

type State = Refusal | 'answering'

export interface OutagesParts {
  readonly channels: readonly Channel[]
  /** What people call the provider. */
  readonly provider: string
  /** Aborted when the process stops. */
  readonly leave: AbortSignal
}

/**
 * Tells channels that an outage of the provider began, and that it ended. That is news and no delivery: it is tried once,
 * and forgotten when that fails, since the log has it too. What changes while a message is on its way is told after it.
 */
export function outages({ channels, provider, leave }: OutagesParts): (to: State) => void {
  const tell = channels.map(channel => teller(is => channel.tell({ is, provider }, leave)))
  return to => {
    for (const each of tell) each(to)
  }
}

function teller(tell: (to: State) => ReturnType<Channel['tell']>): (to: State) => void {
  let told: State = 'answering'
  let latest: State = told
  let telling = false

  async function catchUp(): Promise<void> {
    telling = true
    while (latest !== told) {
      const to = latest
      if ((await tell(to)).is === 'delivered') told = to
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
