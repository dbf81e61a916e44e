/** Makes the executable of this machine's kind, with the licences of what is in it. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { folder, name, run, version } from './release.ts'

run('npm', 'run', 'build:executable')
const said = run(join('build', 'waitlist'), '--version')
if (said !== version) throw new Error(`The executable says that it is ${said}.`)
mkdirSync(folder, { recursive: true })
const archive = join(folder, `${name}-${version}-${process.platform}-${process.arch}.tar.gz`)
run('tar', '-czf', archive, '-C', 'build', 'waitlist', 'LICENSES.txt')
