/** Makes `dist/` for the npm package, since Node strips no types below node_modules. Nothing else needs a build. */
import { execFileSync } from 'node:child_process'
import { cpSync, globSync, rmSync } from 'node:fs'

const target = process.argv[2] ?? 'dist'
rmSync(target, { recursive: true, force: true })
execFileSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', target], { stdio: 'inherit' })
// Files that are read at run time, which the compiler does not copy.
for (const file of globSync('**/*.{sql,css,html}', { cwd: 'src' })) cpSync(`src/${file}`, `${target}/${file}`)
