/**
 * The whole program as one file. Takes in whatever is imported, and what the sources name as `new URL('./…',
 * import.meta.url)` to read it or to run it in a thread. What else they ask `import.meta` could not be answered.
 */
import { existsSync, globSync, statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build, type Plugin, transform } from 'esbuild'

const root = fileURLToPath(new URL('../..', import.meta.url))

// As esbuild prints them: without comments and spaces, in double quotes.
const NAMED = /new URL\("(\.[^"]*)",import\.meta\.url\)/g
/** The file of a thread, which has the extension of the source that starts it. */
const THREAD = /new URL\(`(\.\/[\w./-]+)\$\{extname\(import\.meta\.url\)\}`,import\.meta\.url\)/g

/** What is read at run time: base64 by the path below the root. */
export type Embedded = Record<string, string>

/** The text of a bundle, and the folders of the packages in it. */
export interface Bundle {
  readonly text: string
  readonly packages: readonly string[]
}

/** A source as JavaScript, in which what it names has an address within the executable. */
export async function readdressed(
  source: string,
  file: string,
  embedded: Embedded = {},
  packages: string[] = [],
): Promise<string> {
  let { code } = await transform(source, { loader: 'ts', target: 'esnext', minifyWhitespace: true })
  for (const [whole, name] of code.matchAll(THREAD)) {
    const thread = await bundle(`import '${name}.ts'`, dirname(file))
    packages.push(...thread.packages)
    const address = `data:text/javascript;base64,${Buffer.from(thread.text).toString('base64')}`
    code = code.replace(whole, () => `new URL(${JSON.stringify(address)})`)
  }
  for (const [whole, name] of code.matchAll(NAMED)) {
    const path = join(dirname(file), name!)
    if (!existsSync(path)) throw new Error(`${relative(root, file)} names ${name}, which is not there`)
    const files = statSync(path).isDirectory() ? globSync(join(path, '**/*.*')) : [path]
    for (const each of files) embedded[relative(root, each)] = await readFile(each, 'base64')
    const address = `embedded:/${relative(root, path)}${name!.endsWith('/') ? '/' : ''}`
    code = code.replace(whole, () => `new URL(${JSON.stringify(address)})`)
  }
  const [left] = /.{0,40}import\.meta.{0,20}/.exec(code) ?? []
  if (left !== undefined) throw new Error(`${relative(root, file)} asks what an executable cannot answer: ${left}`)
  return code
}

const withinTheExecutable = (embedded: Embedded, packages: string[]): Plugin => ({
  name: 'within the executable',
  setup(builder) {
    const sources = join(root, 'src/')
    builder.onLoad({ filter: /\.ts$/ }, async ({ path }) =>
      path.startsWith(sources)
        ? { contents: await readdressed(await readFile(path, 'utf8'), path, embedded, packages), loader: 'js' }
        : undefined,
    )
    builder.onResolve({ filter: /^node:fs$/ }, ({ importer }) =>
      importer.startsWith(sources) ? { path: join(root, 'scripts/executable/fs.js') } : undefined,
    )
  },
})

/** One ES module that imports only what Node.js has. */
export async function bundle(contents: string, resolveDir: string): Promise<Bundle> {
  const embedded: Embedded = {}
  const packages: string[] = []
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir },
    // Else the paths in `metafile` begin where this process was started.
    absWorkingDir: root,
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    target: `node${process.versions.node}`,
    minifySyntax: true,
    minifyWhitespace: true,
    logLevel: 'warning',
    // What drivers look for, and do without.
    external: ['pg-native', 'pg-cloudflare'],
    plugins: [withinTheExecutable(embedded, packages)],
  })
  for (const input of Object.keys(metafile.inputs)) {
    const [folder] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? []
    if (folder !== undefined) packages.push(folder)
  }
  const text = [
    // For packages in CommonJS.
    "import { createRequire } from 'node:module'",
    "const require = createRequire('file:///'), __dirname = '/'",
    `globalThis[Symbol.for('waitlist.embedded')] = ${JSON.stringify(embedded)}`,
    outputFiles[0]!.text,
  ].join('\n')
  if (text.includes('import.meta')) throw new Error('A package asks import.meta what an executable cannot answer')
  return { text, packages: [...new Set(packages)].sort() }
}
