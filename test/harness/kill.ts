import assert from 'node:assert/strict'
import { setTimeout as wait } from 'node:timers/promises'
import type { Ledger } from './load.ts'
import { load } from './load.ts'
import type { Program } from './program.ts'

export interface Kill {
  readonly ledger: Ledger
  /** Addresses of its own are made from it. */
  readonly round: number
  readonly random: () => number
  /** The most signups that are acknowledged before. */
  readonly most: number
}

const CONNECTIONS = 8

/** Kills a program that signups are sent to, at any moment, but one at which some are being acknowledged. */
export async function killUnderLoad(program: Program, { ledger, round, random, most }: Kill): Promise<void> {
  const killedAfter = ledger.acknowledged + 1 + Math.floor(random() * most)
  const isTime = Promise.withResolvers<void>()
  const loading = load({
    ledger,
    clients: CONNECTIONS,
    round,
    to: () => program.baseUrl,
    goesOn(answer) {
      if (answer !== null) assert.equal(answer.status, 200)
      if (ledger.acknowledged >= killedAfter) isTime.resolve()
      return answer !== null
    },
  })
  await Promise.race([isTime.promise, loading])
  await wait(random() * 20)
  assert.equal(await program.end('SIGKILL'), null)
  await loading
}
