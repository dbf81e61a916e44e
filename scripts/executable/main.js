// What bin/waitlist.js is elsewhere; it says why.
const [command = 'serve'] = process.argv.slice(2)
if (command === 'serve') for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0))
await import('../../src/main.ts')
