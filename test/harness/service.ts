import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { type Logger, pino } from 'pino'
import { type Service, start } from '../../src/app/start.ts'
import { type Config, readConfig } from '../../src/config/load.ts'
import { temporaryFolder } from './folder.ts'

/** In the place of a test: what is started for it ends with the file. */
export const wholeFile: Pick<TestContext, 'after'> = { after: after as TestContext['after'] }

export interface TestService extends Service {
  readonly config: Config
  readonly databasePath: string
  /** Every log line so far, parsed. */
  readonly logged: Record<string, unknown>[]
}

/**
 * The product in this process: the same composition as the program, on a free port, with a database of its own.
 * Stopped when the test ends. `env` is what an operator would set.
 */
export async function startService(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string> = {},
): Promise<TestService> {
  // Registered before the folder's own removal, since hooks run in that order: a store whose file goes away first fails.
  let stop = async () => true
  test.after(() => stop())
  const databasePath = join(temporaryFolder(test), 'waitlist.db')
  const result = await readConfig({
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: `sqlite:${databasePath}`,
    RATE_LIMIT: '1000000',
    SHUTDOWN_DELAY: '0',
    LOG_LEVEL: 'debug',
    ...env,
  })
  if ('mistakes' in result) throw new Error(result.mistakes.join('\n'))
  const { log, logged } = recordingLog()
  const service = await start(result.config, log)
  let stopped: Promise<boolean> | undefined
  stop = () => (stopped ??= service.stop())
  return { ...service, stop, config: result.config, databasePath, logged }
}

export function recordingLog(): { log: Logger; logged: Record<string, unknown>[] } {
  const logged: Record<string, unknown>[] = []
  const log = pino({ level: 'debug' }, { write: (line: string) => void logged.push(JSON.parse(line)) })
  return { log, logged }
}
