import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, sep } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * The parts of the house: its folders, and three files that stand beside them. How a setting is read (`config/kinds.ts`) is
 * a part of its own, since adapters declare settings, too.
 */
type Part =
  | 'main'
  | 'cli'
  | 'app'
  | 'admin'
  | 'pages'
  | 'form'
  | 'telemetry'
  | 'config'
  | 'kinds'
  | 'http'
  | 'links'
  | 'listen'
  | 'store'
  | Feature
  | 'rate-limit'
  | 'providers'
  | 'destinations'
  | 'challenges'
  | 'domains'
  | 'outbound'
  | 'waitlist'

/** What has SQL of its own. */
type Feature = 'holds' | 'invite' | 'confirm' | 'import' | 'erase' | 'notify'
const ofFeature = { parts: ['store', 'waitlist'], packages: [] } as const

/** The import law: who may import from whom (beside itself), and which packages from npm. */
const law: Record<Part, { readonly parts: readonly Part[]; readonly packages: readonly string[] }> = {
  main: { parts: ['cli', 'app', 'config', 'waitlist'], packages: ['commander'] },
  cli: {
    parts: ['app', 'config', 'store', 'holds', 'invite', 'import', 'erase', 'waitlist'],
    packages: ['pino', 'commander', 'csv-parse'],
  },
  app: {
    parts: [
      'config',
      'http',
      'admin',
      'store',
      'holds',
      'invite',
      'confirm',
      'import',
      'erase',
      'notify',
      'rate-limit',
      'providers',
      'destinations',
      'challenges',
      'domains',
      'links',
      'telemetry',
      'waitlist',
    ],
    packages: ['pino'],
  },
  config: {
    parts: ['kinds', 'http', 'store', 'providers', 'destinations', 'challenges', 'domains', 'outbound', 'waitlist'],
    packages: ['ipaddr.js'],
  },
  kinds: { parts: ['outbound'], packages: [] },
  admin: {
    parts: ['listen', 'telemetry', 'pages', 'store', 'invite', 'waitlist'],
    packages: ['pino', '@prometheus-io/client'],
  },
  pages: { parts: [], packages: [] },
  form: { parts: ['pages'], packages: [] },
  links: { parts: ['confirm', 'waitlist'], packages: [] },
  listen: { parts: ['waitlist'], packages: [] },
  telemetry: { parts: [], packages: [] },
  http: {
    parts: ['form', 'links', 'listen', 'pages', 'store', 'confirm', 'telemetry', 'waitlist'],
    packages: ['pino', 'ipaddr.js', 'json-schema-to-ts', 'marked'],
  },
  store: { parts: ['telemetry', 'waitlist'], packages: ['pg'] },
  holds: ofFeature,
  invite: ofFeature,
  confirm: ofFeature,
  import: ofFeature,
  erase: ofFeature,
  notify: ofFeature,
  'rate-limit': { parts: ['store', 'telemetry', 'waitlist'], packages: [] },
  providers: { parts: ['kinds', 'outbound', 'waitlist'], packages: [] },
  destinations: {
    parts: ['links', 'outbound', 'pages', 'waitlist'],
    packages: ['standardwebhooks', 'nodemailer/lib/mail-composer', 'nodemailer/lib/smtp-connection'],
  },
  domains: { parts: ['waitlist'], packages: [] },
  challenges: { parts: ['outbound', 'store', 'waitlist'], packages: [] },
  outbound: { parts: ['waitlist'], packages: ['undici', 'ipaddr.js'] },
  waitlist: { parts: ['store', 'confirm', 'notify', 'rate-limit'], packages: [] },
}

/** What the configuration may know of the adapters: how their settings are read, never the adapters themselves. */
const settingsOfAdapters = [
  'src/challenges/settings.ts',
  'src/destinations/mail-settings.ts',
  'src/destinations/secret.ts',
  'src/providers/list.ts',
  'src/providers/settings.ts',
]

const files = (folder: string): string[] =>
  existsSync(join(root, folder))
    ? readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
        .filter(entry => entry.isFile())
        .map(entry => join(entry.parentPath, entry.name).slice(root.length).replaceAll(sep, '/'))
        .sort()
    : []

/** The text without comments, so that a word in one is no import. Strings stay. */
const code = (file: string): string =>
  readFileSync(join(root, file), 'utf8').replace(
    /('(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`)|\/\*[\s\S]*?\*\/|\/\/[^\n]*/g,
    (_, string) => string ?? '',
  )

const sources = files('src').filter(file => /(?<!\.d)\.ts$/.test(file))

/** Every module that a file names, in static and dynamic imports. Types count too, unless only what runs is asked for. */
function importsOf(file: string, { types = true } = {}): string[] {
  const text = code(file)
  const statics = [...text.matchAll(/^\s*(?:import|export)\b([^'"`;]*?)\bfrom\s*['"]([^'"]+)['"]/gm)]
    .filter(([, what]) => types || !/^\s+type\b/.test(what!))
    .map(([all, , specifier]) => [all, specifier])
  const bare = text.matchAll(/^\s*import\s*['"]([^'"]+)['"]/gm)
  const dynamic = text.matchAll(/\b(?:import|require|import\.meta\.resolve)\s*\(\s*['"]([^'"]+)['"]/g)
  return [...statics, ...bare, ...dynamic].map(([, specifier]) => specifier!)
}

function partOf(file: string): Part {
  const first = file.split('/')[1]!.replace(/\.ts$/, '')
  const part = file === 'src/config/kinds.ts' ? 'kinds' : first
  assert.ok(part in law, `${file} belongs to no part of the house`)
  return part as Part
}

const resolved = (file: string, specifier: string): string => normalize(join(dirname(file), specifier))

/** Our own files among the imports of one. */
const importedBy = (file: string): string[] =>
  importsOf(file)
    .filter(specifier => specifier.startsWith('.') && specifier.endsWith('.ts'))
    .map(specifier => resolved(file, specifier))

describe('the import law', () => {
  test('the sources are found, and their imports are read', () => {
    assert.ok(sources.length > 30)
    assert.ok(importsOf('src/app/adapters.ts').includes('../rate-limit/memory.ts'), 'static')
    assert.ok(importsOf('src/app/adapters.ts').includes('../destinations/webhook.ts'), 'dynamic')
    assert.ok(importsOf('src/waitlist/join.ts').includes('./rules/signup.ts'), 'type only')
  })

  for (const file of sources) {
    test(`${file} imports only what its place allows`, () => {
      const part = partOf(file)
      const { parts, packages } = law[part]
      for (const specifier of importsOf(file)) {
        if (specifier.startsWith('.')) {
          const target = resolved(file, specifier)
          assert.ok(existsSync(join(root, target)), `${specifier} does not exist`)
          if (target === 'package.json') continue
          const other = partOf(target)
          assert.ok(other === part || parts.includes(other), `${part} must not import from ${other} (${specifier})`)
        } else if (specifier.startsWith('node:')) {
          assert.notEqual(part, 'waitlist', `waitlist/ imports nothing outside (${specifier})`)
        } else {
          assert.ok(packages.includes(specifier), `${part} must not import the package ${specifier}`)
        }
      }
    })
  }

  test('what is imported is written out, so that it can be read here', () => {
    const found = sources.filter(file => /\b(?:import|require)\s*\(\s*(?!['"])/.test(code(file)))
    assert.deepEqual(found, [])
  })

  test('every package that runs is a declared dependency, and every dependency is used', () => {
    const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>
    }
    const used = sources
      .flatMap(file => importsOf(file, { types: false }))
      .filter(specifier => !/^(?:\.|node:)/.test(specifier))
      .map(specifier => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)![0])
    assert.deepEqual([...new Set(used)].sort(), Object.keys(dependencies).sort())
  })

  test('only config/environment.ts reads the environment', () => {
    const readers = sources.filter(file => /\bprocess\s*(?:\?\.|\.|\[)\s*['"]?env\b|node:process/.test(code(file)))
    assert.deepEqual(readers, ['src/config/environment.ts'])
  })

  test('only what composes names adapters, beside the tables of their settings', () => {
    const adapters: readonly Part[] = ['rate-limit', 'providers', 'destinations']
    const naming = sources.filter(file =>
      importsOf(file).some(specifier => {
        if (!specifier.startsWith('.')) return false
        const target = resolved(file, specifier)
        if (partOf(file) === 'config' && settingsOfAdapters.includes(target)) return false
        const part = partOf(target)
        return adapters.includes(part) && part !== partOf(file)
      }),
    )
    assert.deepEqual(naming, ['src/app/adapters.ts', 'src/app/checks.ts', 'src/waitlist/upkeep/clean.ts'])
  })

  test('no file imports itself by way of others, types included', () => {
    const ended = new Set<string>()
    const circles: string[] = []
    const visit = (file: string, way: readonly string[]): void => {
      if (way.includes(file)) circles.push([...way.slice(way.indexOf(file)), file].join(' > '))
      else if (!ended.has(file)) for (const next of importedBy(file)) visit(next, [...way, file])
      ended.add(file)
    }
    for (const file of sources) visit(file, [])
    assert.deepEqual(circles, [])
  })

  test('every file is needed: it is reached from main.ts', () => {
    const reached = new Set<string>()
    const visit = (file: string): void => {
      if (reached.has(file)) return
      reached.add(file)
      importedBy(file).forEach(visit)
    }
    visit('src/main.ts')
    visit('src/store/sqlite/thread.ts')
    assert.deepEqual(
      sources.filter(file => !reached.has(file)),
      [],
    )
  })
})

describe('the names of files', () => {
  const all = ['src', 'test', 'bench', 'scripts', 'bin', 'docs'].flatMap(files)

  test('none is named for nothing in particular', () => {
    const vague = /(?:^|[/._-])(?:utils?|helpers?|managers?|common|misc)(?:[/._-]|$)/i
    assert.deepEqual(
      all.filter(file => vague.test(file)),
      [],
    )
  })
})

test('nothing in a test is told to listen on a fixed port', () => {
  const fixed = /\.listen\(\s*[1-9]|\b(?:ADMIN_)?PORT(?:: *['"]|=)[1-9]/
  // The one reads settings and listens nowhere, the other takes the default port away.
  const exempt = /^test\/(?:config\/config\.|harness\/program\.test)/
  const found = ['test', 'torture', 'bench']
    .flatMap(files)
    .filter(file => file.endsWith('.ts') && fixed.test(code(file)))
  assert.deepEqual(
    found.filter(file => !exempt.test(file)),
    [],
  )
})
