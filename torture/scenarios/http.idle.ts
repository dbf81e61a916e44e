import { setTimeout as wait } from 'node:timers/promises'
import * as limits from '../../src/http/limits.ts'
import { gather } from '../crowd.ts'
import type { Scenario } from '../scenario.ts'
import { underAttack } from '../under-attack.ts'

/** More than the service has room for. */
const CONNECTIONS = 11_000
/** Seconds at least for which they all stay. */
const HOLD = 8
/**
 * Seconds until no connection is left. The kernel completes some for clients that have gone, when its queue is full: to the
 * service they are clients that say nothing, and are refused in time.
 */
const GONE = (limits.HEADERS_TIMEOUT + limits.TIMEOUT_CHECK + limits.LINGER) / 1000 + 1

export const scenario: Scenario = {
  promise: 'Idle connections of one address, as many as it can open, keep nobody else out.',
  least: 24,
  weight: 5,
  async run(scene) {
    const program = await scene.service()
    const port = Number(new URL(program.baseUrl).port)
    return underAttack(scene, program, { memory: 200, gone: GONE }, async () => {
      let cuts = 0
      const crowd = await gather({
        port,
        count: CONNECTIONS,
        // Every second one has been served before.
        joined: (socket, i) =>
          void (i % 2 === 0 && socket.resume().write('GET /api/health HTTP/1.1\r\nHost: x\r\n\r\n')),
        cut: () => void cuts++,
        comesBack: true,
      })
      await wait(Math.max(HOLD, scene.seconds * 0.5) * 1000)
      const size = crowd.size()
      crowd.leave()
      return {
        figures: [
          { name: 'connections that were tried', value: CONNECTIONS },
          { name: 'of them open at the end', value: size },
          { name: 'ended by the service', value: cuts },
        ],
      }
    })
  },
}
