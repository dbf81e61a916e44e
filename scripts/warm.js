/**
 * Runs after `npm ci`: starts the program once, in memory and unseen, so that Node's compile cache holds every file of
 * it. The first real start is then as quick and as small as the next ones. Without it everything works all the same.
 */
import { spawn } from 'node:child_process'

const settings = { PORT: '0', DATABASE_URL: 'sqlite::memory:', SHUTDOWN_DELAY: '0', LOG_LEVEL: 'info' }
const program = spawn(process.execPath, ['bin/waitlist.js', 'serve'], {
  env: { ...process.env, ...settings },
  stdio: ['ignore', 'pipe', 'ignore'],
})
program.stdout.once('data', () => program.kill('SIGTERM'))
setTimeout(() => program.kill('SIGKILL'), 10_000).unref()
