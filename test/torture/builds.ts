import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryFolder } from '../harness/folder.ts'

/** A change of a file below `src/`. */
interface Edit {
  readonly file: string
  readonly from: string | RegExp
  readonly to: string
}

const root = dirname(fileURLToPath(new URL('../../package.json', import.meta.url)))

/** Copies the program with these changes, each of which must fit exactly once. @returns the file to start. */
export function changedCopy(t: Pick<TestContext, 'after'>, edits: readonly Edit[]): string {
  const folder = temporaryFolder(t)
  for (const name of ['bin', 'src', 'package.json']) cpSync(join(root, name), join(folder, name), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  for (const { file, from, to } of edits) {
    const path = join(folder, 'src', file)
    const parts = readFileSync(path, 'utf8').split(from)
    if (parts.length !== 2) throw new Error(`src/${file} has this ${parts.length - 1} times: ${from}`)
    writeFileSync(path, parts.join(to))
  }
  return join(folder, 'bin', 'waitlist.js')
}

const answersBeforeCommit: Edit = {
  file: 'store/store.ts',
  from: '    const admissions = await database.transaction(tx => admit(tx, entries, options))\n',
  to: `    const ran = Promise.withResolvers<readonly Admission[]>()
    database
      .transaction(async tx => ran.resolve(await admit(tx, entries, options)))
      .catch(ran.reject)
    const admissions = await ran.promise
`,
}

/** Builds that break durability on purpose: what does not catch them proves nothing. */
export const broken: Readonly<Record<string, readonly Edit[]>> = {
  'answers before the sync': [answersBeforeCommit],
  'answers a known address before the sync of its contact': [
    {
      file: 'store/sqlite/database.ts',
      from: '        if (changed !== before) sync.committed()\n',
      to: '        if (changed !== before) sync.committed()\n        else return { result, isKnown: true }\n',
    },
    {
      file: 'store/sqlite/database.ts',
      from: '        return result\n      })\n      await sync.wait()\n',
      to: '        return { result }\n      }).then(({ result, isKnown }) => (isKnown ? result : sync.wait().then(() => result)))\n',
    },
  ],
  'attempts a delivery before the sync of its claim': [
    {
      file: 'store/store.ts',
      from: '      return database.transaction(tx => claim(tx, destination, most, address))\n',
      to: `      const ran = Promise.withResolvers<readonly Delivery[]>()
      database
        .transaction(async tx => ran.resolve(await claim(tx, destination, most, address)))
        .catch(ran.reject)
      return ran.promise
`,
    },
  ],
}

/** The same promises, with checkpoints many times as often. */
export const shortLog: readonly Edit[] = [
  ['LOOK_EVERY', 5],
  ['WORTHWHILE', 20],
  ['HOLD', 60],
].map(([name, value]) => ({
  file: 'store/sqlite/database.ts',
  from: new RegExp(`(?<=const ${name} = )[\\d_]+`),
  to: String(value),
}))

/** A disk that takes 500 rows a second, so that this machine is not the limit. */
export const slowDisk = [
  {
    file: 'store/store.ts',
    from: '    const admissions = await database.transaction(tx => admit(tx, entries, options))\n',
    to: `    const admissions = await database.transaction(async tx => {
      const stored = await admit(tx, entries, options)
      await new Promise(resolve => setTimeout(resolve, 2 * entries.length))
      return stored
    })
`,
  },
]
