import { join } from 'node:path'
import { after, type TestContext } from 'node:test'
import { challengeLimiter } from '../../src/app/adapters.ts'
import { routesOf } from '../../src/app/routes.ts'
import { type Service, start } from '../../src/app/start.ts'
import { type Config, readConfig } from '../../src/config/load.ts'
import type { OperatorError } from '../../src/config/operator.ts'
import type { Parts } from '../../src/http/context.ts'
import { type HttpServer, openServer } from '../../src/http/server.ts'
import { languagesOf } from '../../src/messages/languages.ts'
import { memoryLimiter } from '../../src/rate-limit/memory.ts'
import { type JoinParts, join as joinWaitlist } from '../../src/signup/join.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import type { Store } from '../../src/store/store.ts'
import { temporaryFolder } from './folder.ts'
import { recordingLog } from './log.ts'
import { storeAt } from './store.ts'

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
  const config = await readConfig({
    HOST: '127.0.0.1',
    PORT: '0',
    DATABASE_URL: `sqlite:${databasePath}`,
    RATE_LIMIT: '1000000',
    SHUTDOWN_DELAY: '0',
    LOG_LEVEL: 'debug',
    ...env,
  })
  const { log, logged } = recordingLog()
  const service = await start(config, log)
  let stopped: Promise<boolean> | undefined
  stop = () => (stopped ??= service.stop())
  return { ...service, stop, config, databasePath, logged }
}

export interface TestServer extends HttpServer {
  /** Every log line so far, parsed. */
  readonly logged: Record<string, unknown>[]
}

/**
 * The server in front of a store of which `change` may replace a part, to see what the server does when it fails; `parts` are
 * those that the test has of its own.
 */
export async function openTestServer(
  test: Pick<TestContext, 'after'>,
  env: Record<string, string> = {},
  change: (store: Store) => Store = store => store,
  parts: Partial<Parts> = {},
): Promise<TestServer> {
  const config = await readConfig({
    HOST: '127.0.0.1',
    PORT: '0',
    RATE_LIMIT: '1000000',
    SHUTDOWN_DELAY: '0',
    ...env,
  })
  // Registered before the folder's own removal, since hooks run in that order: a store whose file goes away first fails.
  let close = async () => {}
  test.after(() => close())
  const path = join(temporaryFolder(test), 'waitlist.db')
  const store = await storeAt(path)
  const { log, logged } = recordingLog()
  const limiter = memoryLimiter(config.quota)
  const behind = change(store)
  const { signal } = new AbortController()
  const joinParts: JoinParts = {
    store: behind,
    handOver: null,
    timeout: 0,
    inBackground: null,
    signal,
    announce() {},
  }
  const server = await openServer(
    config,
    {
      languages: languagesOf(new Map()),
      version: '0.0.0',
      store: behind,
      join: signup => joinWaitlist(signup, joinParts),
      limiter,
      challengeLimiter: challengeLimiter(config),
      challenge: null,
      links: { secret: '00', find: async () => undefined, confirm: async () => null, async leave() {} },
      accepts: null,
      signal,
      log,
      telemetry: null,
      ...parts,
    },
    routesOf,
  )
  close = async () => {
    await server.close()
    await store.close()
  }
  return { ...server, logged }
}

/** A store whose disk has no room. */
export function full(store: Store): Store {
  const refuse = () => Promise.reject(new StoreUnavailable('no room'))
  return { ...store, admit: refuse, check: refuse }
}

/** What is wrong with these settings, a sentence each. */
export const mistakesIn = (env: Record<string, string>): Promise<readonly string[]> =>
  readConfig(env).then(
    () => [],
    ({ details }: OperatorError) => details,
  )
