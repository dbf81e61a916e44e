import { existsSync, writeSync } from 'node:fs'
import type { Logger } from 'pino'
import { type Config, version } from '../config/load.ts'
import { counted } from '../operate/output.ts'
import { countContacts } from '../store/contacts.ts'
import { operatorErrorOf, storeName, withDatabase } from '../store/open.ts'
import { openLog } from './log.ts'
import { type Service, start } from './start.ts'

/**
 * Runs the service until a signal or a failure ends it. The exit code is 0 after a signal, and 1 if it could not start. If it
 * could not stop in time, or can no longer be trusted, it kills itself. `file`: where settings were read from beside the environment.
 *
 * @throws {OperatorError} when a part cannot be opened as configured.
 */
export async function serve(config: Config, file: string | null): Promise<void> {
  const reloads = config.tls !== null || config.blockedDomainsFile !== null
  // Nothing was accepted yet. What is reloaded is about to be read.
  listenTo(STOPPING, () => process.exit(0))
  listenTo(['SIGHUP'], () => reloads || process.exit(0))
  const log = openLog(config.logLevel)
  endOnBugs(log)

  const isNew = config.store.kind === 'sqlite' && !existsSync(config.store.path)
  const service = await start(config, log).catch(error => {
    throw operatorErrorOf(error, storeName(config.store))
  })
  service.failure.then(error => {
    log.fatal({ err: error }, 'the store failed: nothing more is acknowledged, the process ends')
    endNow()
  })
  const stop = stopping(log, service.stop)
  listenTo(STOPPING, stop)
  // With nothing to read again it means that the terminal was closed.
  listenTo(['SIGHUP'], reloads ? service.reload : stop)

  const { baseUrl: url, origin: listening, adminOrigin: admin } = service
  log.info({ version, url, listening, ...(admin !== null && { admin }) }, 'waitlist is ready')
  for (const warning of config.warnings) log.warn(warning)
  try {
    const contacts = await withDatabase(config.store, ({ read }) => read(tx => countContacts(tx, {})))
    const list = `${isNew ? 'made a new list at' : `keeps ${counted(contacts, 'contact')} in`} ${storeName(config.store)}`
    log.info({ contacts }, list)
    greet(welcome(service, config, list, file))
  } catch (error) {
    log.warn({ why: String(error) }, 'the contacts could not be counted')
  }
}

/** On standard error for the person who started it: standard output is for the log. */
function greet(text: string): void {
  try {
    writeSync(2, text)
  } catch {
    // Nobody reads it.
  }
}

function welcome(service: Service, config: Config, list: string, file: string | null): string {
  const { baseUrl: url, origin, adminOrigin } = service
  return [
    `Waitlist is listening on ${origin}${origin === url ? '' : `, for ${url},`}`,
    `and ${list}`,
    ...(file === null ? [] : [`with settings of ${file}`]),
    '',
    // With a challenge only a page can.
    ...(config.challenge === null ? [`  Sign somebody up:   ${signupCommand(url)}`] : []),
    `  Read the docs:      ${url}/docs/api`,
    ...(adminOrigin === null ? [] : [`  Watch it:           ${adminOrigin}`]),
    // npm sets this for npm start and npx, which know where the program is.
    `  Export the list:    ${process.env.npm_lifecycle_event ? 'npx ' : ''}waitlist export`,
    '',
    '',
  ].join('\n')
}

/** The line that the README shows too. */
export const signupCommand = (url: string): string =>
  `curl ${url.includes('[') ? `'${url}/api/waitlist'` : `${url}/api/waitlist`} -H 'Content-Type: application/json' -d '{"name":"Ada Lovelace","email":"ada@example.com"}'`

const STOPPING = ['SIGTERM', 'SIGINT'] as const

/**
 * Replaces the earlier listeners, that of bin/waitlist.js too. The new one is added first, so that no signal is lost in between.
 */
function listenTo(signals: readonly NodeJS.Signals[], listener: (signal: NodeJS.Signals) => void): void {
  for (const signal of signals) {
    const before = process.listeners(signal)
    process.on(signal, listener)
    for (const each of before) process.off(signal, each)
  }
}

/** The first signal stops the service and ends the process. Under npm one Ctrl-C may arrive twice. */
function stopping(log: Logger, stop: Service['stop']): (signal: NodeJS.Signals) => Promise<void> {
  let isStopping = false
  return async signal => {
    if (isStopping) return
    isStopping = true
    log.info({ signal }, 'stopping')
    if (await stop()) {
      log.info('stopped')
      process.exit(0)
    }
    log.fatal('could not finish in time')
    endNow()
  }
}

/** A regular exit waits for a thread that a disk keeps. What is fatal was logged synchronously. */
function endNow(): void {
  process.kill(process.pid, 'SIGKILL')
  // The first process of a container is not killed by itself.
  process.abort()
}

/** After a bug the state of the process is unknown, so it ends. Acknowledged signups are stored. */
function endOnBugs(log: Logger): void {
  const end = (error: unknown) => {
    log.fatal({ err: error }, 'a bug: the process ends')
    endNow()
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}
