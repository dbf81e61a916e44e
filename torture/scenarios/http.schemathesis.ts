import { execFile } from 'node:child_process'
import { contactsAt } from '../checker.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { schemathesis } from '../tools.ts'
import { type Found, listIn, underAttack } from '../under-attack.ts'

/** For each operation and each phase. */
const EXAMPLES = 300

export const scenario: Scenario = {
  promise:
    'Schemathesis, with all its checks, finds nothing in the running service that its OpenAPI document does not say.',
  needs: [schemathesis.need],
  least: 14,
  weight: 3,
  async run(scene) {
    const program = await scene.service()
    return underAttack(scene, program, { memory: 150 }, () => examine(scene, program.baseUrl))
  },
}

async function examine(scene: Scene, baseUrl: string): Promise<Found> {
  const args = [
    'run',
    `${baseUrl}/api/openapi.json`,
    '--checks=all',
    `--seed=${scene.seed}`,
    `--max-examples=${EXAMPLES}`,
    '--continue-on-failure',
    '--generation-database=none',
    '--no-color',
  ]
  const env = { PATH: process.env.PATH, COLUMNS: '200', PYTHONIOENCODING: 'utf-8' }
  const { code, said } = await new Promise<{ code: unknown; said: string }>(resolve =>
    execFile(
      schemathesis.path,
      args,
      { cwd: scene.folder, env, timeout: 240_000, maxBuffer: 2 ** 26 },
      (error, stdout, stderr) =>
        resolve({ code: error?.code ?? (error === null ? 0 : error.signal), said: `${stdout}\n${stderr}` }),
    ),
  )
  // It has signed up whom it liked.
  for (const { email } of await contactsAt(listIn(scene.folder))) {
    if (!/^(honest|warm)-/.test(email)) scene.ledger.note(email, null)
  }
  const [, generated, passed] = /(\d+) generated, (\d+) passed/.exec(said) ?? []
  if (code !== 0) scene.diagnostic(said)
  return {
    figures: [
      { name: 'requests generated', value: Number(generated) },
      { name: 'of them passed', value: Number(passed) },
    ],
    broken: code === 0 ? [] : [`Schemathesis ended with ${code}; what it found is above`],
  }
}
