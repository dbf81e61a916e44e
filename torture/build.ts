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

/** Answers 50 ms before it commits: more than passes between an acknowledgement and a kill. */
export const answersEarly: Edit = {
  file: 'stores/sqlite/worker.ts',
  from: '        commit.run()\n',
  to: `        port!.postMessage(replies)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
        commit.run()
        replies.length = 0
`,
}

/** Commits without a sync. */
export const syncsNever: Edit = {
  file: 'stores/sqlite/schema.ts',
  from: "['synchronous', 'FULL', 2]",
  to: "['synchronous', 'NORMAL', 1]",
}

/** Checkpoints come often: as code, the same as ever. */
export const shortLog: Edit = { file: 'stores/sqlite/log.ts', from: 'const LONGEST = 8_000', to: 'const LONGEST = 60' }

/** A disk that takes 2,000 rows a second: then it, and not this machine, says how much can be served. */
export const slowDisk: Edit = {
  file: 'stores/sqlite/worker.ts',
  from: "      case 'admit':\n",
  to: `      case 'admit':
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, request.batch.emails.split('\\n').length / 2)
`,
}
