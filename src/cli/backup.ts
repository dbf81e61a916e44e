import { bytes } from '../app/checks.ts'
import { operatorOf } from '../app/database.ts'
import type { Config } from '../config/config.ts'
import { counted, number, print } from './print.ts'

/** Copies the database to a new file, and says what is in it: on standard error, since the copy may be on its way to a pipe. */
export async function backUp(config: Config, file: string): Promise<void> {
  const { contacts, size } = await (await operatorOf(config)).backUp(file)
  process.stderr.write(`${file}: ${counted(contacts, 'contact')}, ${bytes(size)}, checked.\n`)
}

/**
 * Puts a backup in the place of the database, and says what became of both. Without a file: PostgreSQL's own tools have
 * restored the database, and only what a dump cannot know is brought up to date.
 */
export async function restore(config: Config, file: string | undefined): Promise<void> {
  const { contacts, erased, doubtful, kept } = await (await operatorOf(config)).restore(file ?? null)
  const had = kept?.contacts == null ? '' : `; there were ${number(kept.contacts)} before`
  await print([
    file === undefined ? 'The database is brought up to date' : `${file} is the database now`,
    `: ${counted(contacts, 'contact')}${had}.\n`,
    erased > 0 ? `Taken out, since they were erased after it was made: ${counted(erased, 'contact')}.\n` : '',
    doubtful > 0
      ? `In doubt, since they may have arrived after it was made: ${counted(doubtful, 'waiting delivery', 'waiting deliveries')}.\n`
      : '',
  ])
  if (kept === null) return
  await print([`What was there before is kept: ${kept.file}\n`])
  if (kept.contacts === null) {
    await print([`It is damaged, so nobody knows who was erased there: erase them again, with "waitlist remove".\n`])
  }
  if (kept.forgotten > 0) {
    await print([
      `The backup knew ${counted(kept.forgotten, 'erased address', 'erased addresses')} under another secret, which` +
        ' imports do not recognise any more.\n',
    ])
  }
  if (kept.missing > 0) {
    await print([
      `Only there: ${counted(kept.missing, 'contact')}. To bring them back:\n`,
      `  DATABASE_URL=${quoted(`sqlite:${kept.file}`)} waitlist export --format json | waitlist import -\n`,
    ])
  }
}

/** For a POSIX shell, if it needs that. */
const quoted = (text: string): string =>
  /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
