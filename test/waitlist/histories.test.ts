/**
 * Thousands of histories: visitors, the owner, the vendor's failures, the process's deaths and the clock in any order.
 * Whatever happened, once everybody behaves again the promises must be true.
 *
 * A failure prints the seed, the path and the shortest history that shows it. To see that one again:
 *
 *     HISTORY='{"seed":1,"path":"2:3","replayPath":"AB:C"}' node --test test/waitlist/histories.test.ts
 *
 * HISTORIES=100000 runs more of them; .ci/run lives through enough of them to come to every edge. The store is SQLite: that
 * PostgreSQL keeps the same promises is for the contract to show.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSlow } from '../harness/slow.ts'
import { commands, type Model, people } from './histories/commands.ts'
import { edges } from './histories/edges.ts'
import type { Witness } from './histories/line.ts'
import { openPlace, type Place } from './histories/place.ts'
import { virtualTime } from './histories/time.ts'
import { type Abilities, vendorNames } from './histories/vendor.ts'
import { comeToRest, judge } from './histories/verdict.ts'
import { createWorld, type World } from './histories/world.ts'

const { HISTORIES = isSlow ? '2000' : '60', HISTORY = '{}' } = process.env
const { replayPath, ...again }: { seed?: number; path?: string; replayPath?: string } = JSON.parse(HISTORY)
const constraints = { maxCommands: 24, size: 'max', ...(replayPath !== undefined && { replayPath }) } as const

const DAY = 86_400_000
/** What goes by the machine's own clock, as an operator's commands do, is due at once. */
const START = Date.parse('2100-07-18T09:30:00Z')
const vendors: Readonly<Record<string, Abilities>> = {
  'recognises what we did': { recognisesOwn: true, repeatable: DAY },
  'cannot tell what we did': { recognisesOwn: false, repeatable: 0 },
}

const visited = new Map<string, number>()

for (const [what, abilities] of Object.entries(vendors)) {
  test(`with a vendor that ${what}, every history ends well`, { timeout: 600_000 }, async t => {
    const time = virtualTime(START)
    t.after(time.restore)
    let place: Place | undefined
    let histories = 0

    async function live(history: Iterable<fc.AsyncCommand<Model, World>>): Promise<void> {
      place ??= await openPlace(time.now, vendorNames[0])
      await place.turnThePage()
      const faults: string[] = []
      const witness: Witness = {
        seen: edge => void visited.set(edge, (visited.get(edge) ?? 0) + 1),
        fault: what => void faults.push(what),
      }
      const domain = `h${++histories}.example.com`
      const model: Model = {
        domain,
        owned: new Set(),
        refusing: new Set(),
        down: new Set(),
        gone: false,
        isFirst: true,
      }
      const world = createWorld(place, time, witness, abilities)
      try {
        await fc.asyncModelRun(() => ({ model, real: world }), history)
        await comeToRest(world)
        assert.deepEqual(faults, [], faults.join('; '))
        for (const person of people) judge(world, `${person}@${domain}`, abilities)
      } catch (error) {
        // What a failed history left behind must not get into the next.
        await place.close()
        place = undefined
        throw error
      }
    }

    try {
      const property = fc.asyncProperty(commands(constraints), live)
      await fc.assert(property, { numRuns: Number(HISTORIES) / vendorNames.length, ...again })
    } finally {
      await place?.close()
    }
    t.diagnostic(`${histories} histories`)
  })
}

test('the histories came to every edge', t => {
  const counts = [...visited].map(([edge, count]) => `${edge} (${count})`)
  t.diagnostic(counts.sort().join('; '))
  if (Number(HISTORIES) < 2_000 || again.seed !== undefined) return t.skip('too few histories')
  for (const edge of edges) assert.ok(visited.has(edge), `no history came to: ${edge}`)
})
