/** Makes `dist/` for the npm package, since Node strips no types below node_modules. Nothing else needs a build. */
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'

const target = process.argv[2] ?? 'dist'
rmSync(target, { recursive: true, force: true })
execFileSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', target], { stdio: 'inherit' })
// What is read at run time, which the compiler does not copy.
cpSync('src', target, { recursive: true, filter: path => !/(?<!\.d)\.ts$/.test(path) })
