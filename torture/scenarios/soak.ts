import { generator } from '../../bench/load.ts'
import { rateOf } from '../../bench/measure.ts'
import { newSignup } from '../../bench/scenarios.ts'
import { heapOf, inspected } from '../../test/harness/heap.ts'
import { type Outcome, openLoop } from '../../test/harness/open-loop.ts'
import { linux } from '../needs.ts'
import type { Line, Scenario } from '../scenario.ts'

const CONNECTIONS = 32
/** Seconds in which the rate is found. */
const TRIAL = 5
/** Seconds of load between two looks at the clock. */
const STRETCH = 20
/** The part of the time in which caches fill. */
const WARM_UP = 1 / 6
/** Seconds from which on a slope says something, and how steep it may be, in MB/h. */
const LONG = 1_800
const GROWTH = 6
/** Of so many requests one is a new address: the file must not be what grows. */
const NEW = 20

export const scenario: Scenario = {
  promise: 'At half of the load that it can take, neither its memory nor its open files grow.',
  byHand: 'it takes an hour to say something.',
  needs: [linux],
  async run(scene) {
    const program = await scene.service(inspected)
    const { baseUrl } = program
    const trial = {
      port: Number(new URL(baseUrl).port),
      request: newSignup,
      status: 200,
      connections: 64,
      seconds: TRIAL,
    }
    const rate = Math.floor(rateOf(await generator.run(trial)) / 2)
    const watched = scene.watch(program.process.pid!)
    const outcomes: Outcome[] = []
    const heap = await heapOf(program)
    const heaps: [number, number][] = []
    let sent = 0
    while (!scene.isOver()) {
      const stages = [{ rate, seconds: STRETCH }]
      const request = () => requestTo(baseUrl, sent++)
      outcomes.push(...(await openLoop({ baseUrl, connections: CONNECTIONS, stages, request })))
      heaps.push([watched.samples.at(-1)!.at, await heap.used()])
    }
    heap.close()
    watched.stop()
    const stored = Math.ceil(sent / NEW)
    const [memory, descriptors] = [watched.line('memory', 'memory'), watched.line('open files', 'descriptors')]
    const used = { name: 'heap', points: heaps }
    const answered = outcomes.reduce((sum, { answers }) => sum + (answers[200]?.count ?? 0), 0)
    await program.end('SIGTERM')
    const growth = slopeOf(memory) * 3600
    // In minutes, a slope is noise.
    const isLong = scene.seconds >= LONG
    return {
      broken: isLong && growth > GROWTH ? [`Memory grew by ${growth.toFixed(1)} MB/h.`] : [],
      figures: [
        { name: 'requests a second', value: rate },
        { name: 'answered with 200', value: answered },
        { name: 'any other answer, or none', value: sent - answered, most: 0 },
        { name: 'new addresses', value: stored },
        {
          name: 'p99, median of all stretches',
          value: median(outcomes.map(({ answers }) => answers[200]?.p99 ?? 0)),
          unit: 'ms',
        },
        { name: 'lateness of the generator, p99', value: median(outcomes.map(({ lag }) => lag.p99)), unit: 'ms' },
        { name: 'memory at the end', value: memory.points.at(-1)![1], unit: 'MB' },
        { name: 'growth of memory after the warm-up', value: growth, unit: 'MB/h', most: GROWTH },
        { name: 'growth of the heap, after collection', value: slopeOf(used) * 3600, unit: 'MB/h', most: GROWTH },
        { name: 'growth of open files after the warm-up', value: slopeOf(descriptors) * 3600, unit: '/h', most: 1 },
      ],
      plots: [
        { name: 'memory', title: 'Memory at half load', x: 'seconds', y: 'MB', lines: [memory, used] },
        { name: 'files', title: 'Open files and sockets at half load', x: 'seconds', y: 'open', lines: [descriptors] },
      ],
    }
  },
}

/** Mostly what it knows: a signup that was there, health, the documents. */
function requestTo(baseUrl: string, number: number): string {
  const { host } = new URL(baseUrl)
  const turn = number % NEW
  if (turn === 1) return `GET /api/health HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  if (turn === 2) return `GET /api/openapi.json HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  const body = `{"name":"Zebulon Quixote","email":"soak-${turn === 0 ? number : turn * NEW}@quixote.example"}`
  const head = `host: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
  return `POST /api/waitlist HTTP/1.1\r\n${head}\r\n\r\n${body}`
}

/** By least squares, after the warm-up: y for each unit of x. */
function slopeOf({ points }: Line): number {
  const rest = points.slice(Math.floor(points.length * WARM_UP))
  const mean = (of: 0 | 1) => rest.reduce((sum, point) => sum + point[of], 0) / rest.length
  const [x, y] = [mean(0), mean(1)]
  const [above, below] = rest.reduce(
    ([a, b], point) => [a + (point[0] - x) * (point[1] - y), b + (point[0] - x) ** 2],
    [0, 0],
  )
  return above / below
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
