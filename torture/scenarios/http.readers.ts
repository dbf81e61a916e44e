import { setTimeout as wait } from 'node:timers/promises'
import { pipelineUnread, type UnreadClients } from '../../test/harness/unread.ts'
import type { Scenario } from '../scenario.ts'
import { inTurn, underAttack, withTls } from '../under-attack.ts'

/** Megabytes: what a small container leaves. */
const HEAP = 192
/** Milliseconds between two signs of life of those that read nothing. */
const SIGNS = 5_000
/** Seconds at least that they are given to do harm. */
const HOLD = 5
/** Seconds until the last of them must be cut, and how late that may be. */
const CUT = 90
const LATE = 10

interface Readers {
  readonly env: Readonly<Record<string, string>>
  open(baseUrl: string): Promise<UnreadClients>
}

const readers: Readonly<Record<string, Readers>> = {
  'http-64': { env: {}, open: url => pipelineUnread(url, { connections: 3_000, requests: 64, signs: null }) },
  'http-1000': { env: {}, open: url => pipelineUnread(url, { connections: 500, requests: 1_000, signs: SIGNS }) },
  'https-64': { env: withTls, open: url => pipelineUnread(url, { connections: 1_000, requests: 64, signs: null }) },
}

export const scenario: Scenario = {
  promise: `Clients by the thousand that ask and read nothing cost at most 100 MB, also with a heap of ${HEAP} MB, and nobody else notices.`,
  least: 30,
  weight: 7,
  run(scene) {
    const each = scene.seconds / Object.keys(readers).length
    const attack =
      ({ env, open }: Readers) =>
      async () => {
        const program = await scene.service({ ...env, NODE_OPTIONS: `--max-old-space-size=${HEAP}` })
        return underAttack(scene, program, { memory: 100, gone: 10 }, async () => {
          const start = performance.now()
          const clients = await open(program.baseUrl)
          const most = clients.open()
          const isOver = () => performance.now() - start > Math.max(HOLD, each * 0.6) * 1000
          const isAlive = () => program.process.exitCode === null && program.process.signalCode === null
          while (isAlive() && clients.open() > 0 && !isOver()) await wait(100)
          const left = clients.open()
          const after = (performance.now() - start) / 1000
          clients.close()
          const isLate = left > 0 && after > CUT + LATE
          return {
            figures: [
              { name: 'connections that read nothing', value: most },
              { name: `of them open after ${Math.round(after)} s`, value: left },
            ],
            broken: isLate ? [`${left} of ${most} are not cut after ${Math.round(after)} s`] : [],
          }
        })
      }
    return inTurn(scene, Object.fromEntries(Object.entries(readers).map(([name, each]) => [name, attack(each)])))
  },
}
