#!/usr/bin/env node
// Plain JavaScript, so that any Node can read it, and that the compile cache is on before the first TypeScript file is
// read: without it, stripping types costs each start 40 ms and 15 MB. Node strips no types below node_modules, so there
// the package's compiled files run instead.
import { readFileSync } from 'node:fs'
import * as nodeModule from 'node:module'

// The kernel drops a signal to the first process of a container until somebody listens, and what follows is slow. This is
// for the service alone, until it listens itself (src/app/serve.ts): another command would seem to have done its work.
const [command = 'serve'] = process.argv.slice(2)
if (command === 'serve') for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => process.exit(0))

const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))
const oldest = Number(engines.node.slice(2))
if (Number.parseInt(process.versions.node, 10) < oldest) {
  process.stderr.write(`waitlist: this is Node.js ${process.versions.node}; ${oldest} or newer is needed
`)
  process.exit(1)
}
// A name that no name server answers for takes one of these threads for ten seconds, and by default there are four.
process.env.UV_THREADPOOL_SIZE ??= '16'
nodeModule.enableCompileCache()
const { main } = await import(import.meta.url.includes('/node_modules/') ? '../dist/main.js' : '../src/main.ts')
process.exitCode = await main(process.argv.slice(2))
// Written now, since the process may be killed before a regular exit.
nodeModule.flushCompileCache()
