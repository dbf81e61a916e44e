/**
 * Runs after `npm ci`: starts the program once, in memory, to fill Node's compile cache. The first real start is then as
 * fast and as small as later ones. Everything works without it too. It is `postprepare` since npm warns of a `prepare`
 * where the package is installed.
 */
import { spawn } from 'node:child_process'

const settings = { PORT: '0', DATABASE_URL: 'sqlite::memory:', SHUTDOWN_DELAY: '0', LOG_LEVEL: 'info' }
const program = spawn(process.execPath, ['bin/waitlist.js', 'serve'], {
  env: { ...process.env, ...settings },
  stdio: ['ignore', 'pipe', 'ignore'],
})
program.stdout.once('data', () => program.kill('SIGTERM'))
setTimeout(() => program.kill('SIGKILL'), 10_000).unref()
