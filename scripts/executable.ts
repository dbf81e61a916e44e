/**
 * Makes `build/waitlist`, one file that runs without npm: this Node.js with the whole program in it, and beside it its
 * licence and those of the packages in it. Takes another folder as its argument.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundle } from './executable/bundle.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const heapFlags: string[] = JSON.parse(readFileSync(join(root, 'bin/heap-flags.json'), 'utf8'))
const target = resolve(process.argv[2] ?? 'build')

/** Their licences ask to be passed on with each copy. Some packages only name theirs. */
function licences(packages: readonly string[]): string {
  const texts = packages.map(folder => {
    const { name, version, license, homepage = '' } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    const files = globSync(join(folder, '{LICENSE,LICENCE,license}*')).map(file => readFileSync(file, 'utf8'))
    return [`${name} ${version}: ${license} ${homepage}`, ...files].join('\n\n')
  })
  // npm brings it beside the program.
  const own = globSync(join(root, 'node_modules/node/node_modules/node-*/LICENSE')).map(file =>
    readFileSync(file, 'utf8'),
  )
  const address = `https://github.com/nodejs/node/blob/${process.version}/LICENSE`
  return [[`Node.js ${process.version}: ${address}`, ...own].join('\n\n'), ...texts].join(`\n${'-'.repeat(80)}\n`)
}

const { devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
if (process.versions.node !== devDependencies.node) {
  throw new Error(
    `this is Node.js ${process.versions.node}; the executable brings ${devDependencies.node}: npm run build:executable`,
  )
}
process.chdir(root)
const work = mkdtempSync(join(tmpdir(), 'waitlist-executable-'))
try {
  const { text, packages } = await bundle("import './main.js'", join(root, 'scripts/executable'))
  const [main, node, config] = ['main.mjs', 'node', 'config.json'].map(name => join(work, name)) as [
    string,
    string,
    string,
  ]
  rmSync(target, { recursive: true, force: true })
  mkdirSync(target, { recursive: true })
  writeFileSync(main, text)
  writeFileSync(join(target, 'LICENSES.txt'), licences([root, ...packages]))
  copyFileSync(process.execPath, node)
  // A fifth of Node.js is the names of its functions, which only a debugger of C++ reads. On macOS it would break the signature.
  if (process.platform === 'linux' && spawnSync('strip', [node]).error !== undefined) {
    console.error('There is no strip: the executable will be larger.')
  }
  const output = join(target, 'waitlist')
  writeFileSync(
    config,
    JSON.stringify({
      main,
      mainFormat: 'module',
      output,
      executable: node,
      disableExperimentalSEAWarning: true,
      useCodeCache: true,
      execArgv: heapFlags,
    }),
  )
  // With the same flags, since V8 takes no code cache that was made with others.
  execFileSync(process.execPath, [...heapFlags, '--build-sea', config], { stdio: ['ignore', 'ignore', 'inherit'] })
  // macOS runs nothing that is not signed, be it by nobody: what was added has made Node's own signature wrong.
  if (process.platform === 'darwin') execFileSync('codesign', ['--force', '--sign', '-', output])
  console.log(`${relative(process.cwd(), output)}: ${Math.round(statSync(output).size / 1e6)} MB`)
} finally {
  rmSync(work, { recursive: true, force: true })
}
