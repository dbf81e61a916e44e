import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A change of the source. What it replaces must be there exactly once, so that no change is ever left out unseen. */
export interface Edit {
  /** Below `src/`. */
  readonly file: string
  readonly from: string
  readonly to: string
}

const ours = fileURLToPath(new URL('../bin/waitlist.js', import.meta.url))

/** Copies the program into an empty folder, with these changes. @returns its file to start. */
export function changedCopy(entry = ours, folder: string, edits: readonly Edit[]): string {
  const root = dirname(dirname(entry))
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

/** Builds that break a promise on purpose: none of them is seen unless the check is good. */
export type Build = readonly Edit[]

/** A batch is answered when its statements have run. */
const BEFORE: Edit = {
  file: 'store/store.ts',
  from: '    const admissions = await database.transaction(tx => admit(tx, entries, options))\n',
  to: `    const ran = Promise.withResolvers<readonly Admission[]>()
    database
      .transaction(async tx => ran.resolve(await admit(tx, entries, options)))
      .catch(ran.reject)
    const admissions = await ran.promise
`,
}

/** Answers 50 ms before it commits: more than passes between an acknowledgement and a kill. */
export const answersEarly: Build = [
  BEFORE,
  {
    file: 'store/sqlite/database.ts',
    from: '      commit.run()\n',
    to: '      await sleep(50)\n      commit.run()\n',
  },
]

/** Answers when it has committed, and not when the log is synced. */
export const answersUnsynced: Build = [BEFORE]

/** Answers those who are known at once, also where the contact that it found is not synced yet. */
export const answersKnownAtOnce: Build = [
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
]

/** Attempts what it has claimed before the claim is synced. */
export const attemptsUnsynced: Build = [
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
]

/** Checkpoints come often: as code, the same as ever. */
export const shortLog: Build = [
  {
    file: 'store/sqlite/database.ts',
    from: 'const LOOK_EVERY = 50\n',
    to: 'const LOOK_EVERY = 5\n',
  },
  {
    file: 'store/sqlite/database.ts',
    from: 'const WORTHWHILE = 250\nconst HOLD = 8_000\n',
    to: 'const WORTHWHILE = 20\nconst HOLD = 60\n',
  },
]

/** A disk that takes 2,000 rows a second: then it, and not this machine, says how much can be served. */
export const slowDisk: Build = [
  {
    file: 'store/store.ts',
    from: '    const admissions = await database.transaction(tx => admit(tx, entries, options))\n',
    to: `    const admissions = await database.transaction(async tx => {
      const stored = await admit(tx, entries, options)
      await new Promise(resolve => setTimeout(resolve, entries.length / 2))
      return stored
    })
`,
  },
]
