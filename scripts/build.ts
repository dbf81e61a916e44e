/** Makes `dist/` for the npm package, since Node strips no types below node_modules. Nothing else needs a build. */
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { challengeScript, formScript } from '../src/form/script.ts'

const target = process.argv[2] ?? 'dist'
rmSync(target, { recursive: true, force: true })
execFileSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', target], { stdio: 'inherit' })
// What is read at run time, which the compiler does not copy.
cpSync('src', target, { recursive: true, filter: path => !/(?<!\.d)\.ts$/.test(path) })
// `waitlist/form`, as the service serves it.
writeFileSync(`${target}/form.js`, formScript)
writeFileSync(`${target}/form-challenge.js`, challengeScript)
