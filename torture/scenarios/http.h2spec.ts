import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fixture } from '../../test/harness/tls.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { h2spec } from '../tools.ts'
import { type Found, underAttack, withTls } from '../under-attack.ts'

/**
 * Some cases are races that either server may win or lose, so each has several tries. Not all need the same: our fields are
 * bounded, which long ones exceed, and short ones do not exceed a frame.
 */
const ROUNDS = [4_000, 1_000, 4_000, 1_000]
/** Long enough for the windows that are tried. */
const PAGE = '/docs/api'

/**
 * We answer before this request has ended, and end its stream without an error (RFC 9113 §8.1). So its trailers, which
 * should be refused, come too late to be looked at.
 */
const ANSWERED_FIRST = 'http2/8.1.2.1: Sends a HEADERS frame that contains a pseudo-header field as trailers'

export const scenario: Scenario = {
  promise: 'No case of h2spec fails that a bare server of node:http2 passes.',
  needs: [h2spec.need],
  least: 18,
  weight: 4,
  async run(scene) {
    const program = await scene.service(withTls)
    return underAttack(scene, program, { memory: 100 }, () => compare(scene, program.baseUrl))
  },
}

async function compare(scene: Scene, baseUrl: string): Promise<Found> {
  const ours = new Set<string>()
  const bares = new Set<string>()
  const all = new Set<string>()
  const bare = await bareServer(scene)
  for (const [round, longest] of ROUNDS.entries()) {
    if (round >= 2 && scene.isOver(0.7)) break
    const [our, its] = await Promise.all([
      outcomes(scene, `ours-${round}`, Number(new URL(baseUrl).port), longest),
      outcomes(scene, `bare-${round}`, bare, longest),
    ])
    for (const name of our.keys()) all.add(name)
    for (const [name, outcome] of our) if (outcome !== 'failed') ours.add(name)
    for (const [name, outcome] of its) if (outcome === 'passed') bares.add(name)
  }
  const failed = [...all].filter(name => !ours.has(name))
  const onBoth = failed.filter(name => !bares.has(name))
  for (const name of onBoth) scene.diagnostic(`fails on both: ${name}`)
  return {
    figures: [
      { name: 'cases', value: all.size },
      { name: 'that we never pass', value: failed.length },
      { name: 'of them passed by the bare server', value: failed.length - onBoth.length, most: 0 },
    ],
    broken: [
      ...(all.size === 0 ? ['h2spec had no cases'] : []),
      ...failed
        .filter(name => bares.has(name) && name !== ANSWERED_FIRST)
        .map(name => `only a bare server passes: ${name}`),
    ],
  }
}

/** A server in this process, with nothing but an answer. */
async function bareServer(scene: Scene): Promise<number> {
  const cert = readFileSync(fixture('first.crt'))
  const key = readFileSync(fixture('first.key'))
  const text = 'x'.repeat(30_000)
  const server = createSecureServer({ cert, key, allowHTTP1: true }, (_, response) => response.end(text))
  server.on('sessionError', () => {}).on('session', session => scene.after(() => session.destroy()))
  scene.after(() => server.close())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return (server.address() as AddressInfo).port
}

type Outcome = 'passed' | 'failed' | 'skipped'

async function outcomes(scene: Scene, name: string, port: number, longest: number): Promise<Map<string, Outcome>> {
  const report = join(scene.folder, `${name}.xml`)
  const args = [
    '-t',
    '-k',
    '-p',
    String(port),
    '-P',
    PAGE,
    '-o',
    '2',
    '--max-header-length',
    String(longest),
    '-j',
    report,
  ]
  // It exits with 1 where a case fails.
  await new Promise<void>(resolve => execFile(h2spec.path, args, { timeout: 90_000 }, () => resolve()))
  // The bytes that were received are in it as they are, so no reader of XML takes it.
  const text = readFileSync(report, 'latin1')
  const cases = text.matchAll(/<testcase package="([^"]*)" classname="([^"]*)"[^>]*>(.*?)<\/testcase>/gs)
  return new Map(
    [...cases].map(([, section, what, inside]) => [
      `${section}: ${what!.replaceAll('&#34;', '"').replaceAll('&#39;', "'")}`,
      /<(failure|error)/.test(inside!) ? 'failed' : inside!.includes('<skipped') ? 'skipped' : 'passed',
    ]),
  )
}
