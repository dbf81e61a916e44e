import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { altcha } from '../../src/challenges/altcha.ts'
import { listening } from '../../test/harness/listening.ts'
import { startMailServer } from '../../test/harness/mail-server.ts'
import { type Outcome, openLoop } from '../../test/harness/open-loop.ts'
import { solved } from '../../test/harness/solve.ts'
import { linux } from '../needs.ts'
import type { Scenario } from '../scenario.ts'

const CONNECTIONS = 32
/** Signups a second, each of a new address. */
const RATE = 50
/** Requests for each of them: it, a challenge, it again, and a document. */
const REQUESTS = 4
/** Seconds of load between two looks at the clock. */
const STRETCH = 20
/** Seconds from which on growth says something: before, caches fill. In megabytes, from the second third to the last. */
const LONG = 1_800
const GROWTH = 6
/** Megabytes of memory. */
const MOST = 220

const SECRET = 'secret-of-the-scenario'

export const scenario: Scenario = {
  promise: `With every destination, a challenge and holds at ${RATE} new contacts a second, it takes ${MOST} MB at most, and neither its memory nor its open files grow.`,
  byHand: 'it takes half an hour to say something.',
  needs: [linux],
  async run(scene) {
    // All that they look for is the status.
    const tool = createServer((request, response) => request.resume().once('end', () => response.end('ok')))
    const [url, mail] = await Promise.all([listening(scene, tool), startMailServer(scene)])
    const program = await scene.service({
      CHALLENGE: 'altcha',
      CHALLENGE_SECRET: SECRET,
      CHALLENGE_RANGE: '1',
      HOLD_SUSPICIOUS: 'true',
      HOLD_ABOVE: '1000000',
      TRACK_SOURCES: 'true',
      PROVIDER: 'customerio',
      CUSTOMERIO_SITE_ID: 'site',
      CUSTOMERIO_API_KEY: 'key-of-the-scenario',
      CUSTOMERIO_BASE_URL: url,
      WEBHOOK_URL: url,
      WEBHOOK_SECRET: `whsec_${Buffer.alloc(24, 'x').toString('base64')}`,
      SLACK_WEBHOOK_URL: url,
      DISCORD_WEBHOOK_URL: url,
      CHAT_NAMES: 'true',
      SMTP_URL: `smtp://${mail.host}:${mail.port}`,
      MAIL_FROM: 'list@example.com',
      MAIL_RATE: '6000',
    })
    const { baseUrl } = program
    const challenge = altcha({ secret: SECRET, range: 1 })
    const solutions = () =>
      Promise.all(Array.from({ length: RATE * STRETCH }, async () => solved(await challenge.issue!())))
    const watched = scene.watch(program.process.pid!)
    const outcomes: Outcome[] = []
    let contacts = 0
    let sent = 0
    let next = solutions()
    while (!scene.isOver()) {
      const ready = await next
      next = wait(1_000).then(solutions)
      const begun = sent
      const request = () => {
        const [number, turn] = [Math.floor((sent - begun) / REQUESTS), (sent - begun) % REQUESTS]
        sent++
        if (turn === 0) contacts++
        return requestTo(baseUrl, contacts, turn, ready[number]!)
      }
      const stages = [{ rate: RATE * REQUESTS, seconds: STRETCH }]
      outcomes.push(...(await openLoop({ baseUrl, connections: CONNECTIONS, stages, request })))
    }
    await next
    watched.stop()
    const answered = outcomes.reduce((sum, { answers }) => sum + (answers[200]?.count ?? 0), 0)
    const most = watched.peakMemory()
    await program.end('SIGTERM')
    const [first, second, last] = thirdsOf(watched.samples.map(({ memory }) => memory))
    const growth = last! - second!
    const [, filesBefore, files] = thirdsOf(watched.samples.map(({ descriptors }) => descriptors))
    const grows = scene.seconds >= LONG && growth > GROWTH
    return {
      broken: [
        ...(grows ? [`Memory grew by ${growth.toFixed(1)} MB.`] : []),
        ...(most > MOST ? [`It took ${most.toFixed(0)} MB.`] : []),
      ],
      figures: [
        { name: 'new contacts', value: contacts },
        { name: 'mails', value: mail.mails.length },
        { name: 'answered with 200', value: answered },
        { name: 'any other answer, or none', value: sent - answered, most: 0 },
        {
          name: 'p99, median of all stretches',
          value: median(outcomes.map(({ answers }) => answers[200]?.p99 ?? 0)),
          unit: 'ms',
        },
        { name: 'lateness of the generator, p99', value: median(outcomes.map(({ lag }) => lag.p99)), unit: 'ms' },
        { name: 'memory in the first third of the time, median', value: first!, unit: 'MB' },
        { name: 'in the second', value: second!, unit: 'MB' },
        { name: 'in the last', value: last!, unit: 'MB', most: second! + GROWTH },
        { name: 'memory, at most', value: most, unit: 'MB', most: MOST },
        { name: 'growth of open files, from the second third to the last', value: files! - filesBefore!, most: 1 },
      ],
    }
  },
}

/** What a visitor asks for, one after the other. */
function requestTo(baseUrl: string, number: number, turn: number, altcha: string): string {
  const { host } = new URL(baseUrl)
  if (turn === 1) return `GET /api/challenge HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  if (turn === 3) return `GET /api/health HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  const body = JSON.stringify({ name: 'Zebulon Quixote', email: `soak@quixote-${number}.example`, altcha })
  const head = `host: ${host}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
  return `POST /api/waitlist?utm_source=soak HTTP/1.1\r\n${head}\r\n\r\n${body}`
}

/** The medians of its thirds. */
const thirdsOf = (values: readonly number[]): readonly number[] =>
  [0, 1, 2].map(third => median(values.slice((third * values.length) / 3, ((third + 1) * values.length) / 3)))

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN
