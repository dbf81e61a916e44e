import { sourceParameters } from '../../waitlist/rules/contact.ts'

/** What `--map` can name. */
export const mappable = ['name', 'email', 'createdAt', ...sourceParameters] as const
/** Our own export begins with these columns; those of the sources may follow. */
const ours = ['id', 'name', 'email', 'state', 'createdAt'] as const

export type Member = (typeof mappable)[number] | (typeof ours)[number]

/** Where the members are found: numbers of columns, whose texts are joined by a space. */
export type Columns = Readonly<Partial<Record<Member, readonly number[]>>>

/** Why no columns were found. */
export interface Unclear {
  readonly unclear: string
}

/** The columns of our own export; undefined: it is the file of another tool. */
export function ownColumns(heading: readonly string[]): Columns | undefined {
  const known: readonly string[] = [...ours, ...sourceParameters]
  const isOurs = ours.every((name, i) => heading[i] === name) && heading.every(name => known.includes(name))
  if (!isOurs || new Set(heading).size < heading.length) return undefined
  return Object.fromEntries(heading.map((name, i) => [name, [i]]))
}

/** Reads `--map`. A name of two columns with `+` in between means both. */
export function mappedColumns(heading: readonly string[], map: Readonly<Record<string, string>>): Columns | Unclear {
  const columns: Partial<Record<Member, readonly number[]>> = {}
  for (const [member, column] of Object.entries(map)) {
    if (!mappable.some(each => each === member)) {
      return { unclear: `--map knows no member ${member}. There are ${mappable.join(', ')}.` }
    }
    const names = heading.includes(column) ? [column] : column.split('+').map(name => name.trim())
    for (const name of names) {
      const found = heading.filter(each => each === name).length
      if (found === 0) return { unclear: `The heading has no column ${name}, which --map names.` }
      if (found > 1) return { unclear: `The heading has the column ${name} more than once. Rename one of them.` }
    }
    columns[member as Member] = names.map(name => heading.indexOf(name))
  }
  const missing = (['name', 'email'] as const).filter(member => columns[member] === undefined)
  if (missing.length === 0) return columns
  return { unclear: `--map must say where both are: add ${missing.map(each => `--map ${each}=…`).join(' and ')}.` }
}

/** Well-known headings, without case, spaces and punctuation. The earlier ones are preferred. */
const headings: Readonly<Partial<Record<Member, readonly (string | readonly string[])[]>>> = {
  email: ['email', 'emailaddress', 'youremail', 'mail'],
  name: [
    'name',
    'fullname',
    'yourname',
    ['firstname', 'lastname'],
    ['fname', 'lname'],
    ['firstname', 'surname'],
    'firstname',
    'fname',
  ],
  createdAt: [
    'createdat',
    'confirmtime',
    'optintime',
    'subscribedat',
    'submittedat',
    'signedupat',
    'joinedat',
    'dateadded',
    'signupdate',
  ],
  ...Object.fromEntries(sourceParameters.map(name => [name, [name.replace('_', '')]])),
}

const plain = (name: string): string => name.toLowerCase().replaceAll(/[ _.:?*-]/g, '')

/** Guesses by the headings of other tools. */
export function guessedColumns(heading: readonly string[]): Columns | Unclear {
  const there = heading.map(plain)
  const columns: Partial<Record<Member, readonly number[]>> = {}
  for (const [member, known] of Object.entries(headings)) {
    const names = known
      .map(each => (typeof each === 'string' ? [each] : each))
      .find(each => each.every(name => there.includes(name)))
    if (names === undefined) continue
    if (names.some(name => there.indexOf(name) !== there.lastIndexOf(name))) {
      return { unclear: `The heading has more than one column for the ${member}. Rename one of them, or use --map.` }
    }
    columns[member as Member] = names.map(name => there.indexOf(name))
  }
  // The first line is not shown: without a heading it would be a person.
  const missing = (['name', 'email'] as const).filter(member => columns[member] === undefined)
  if (missing.length === 0) return columns
  const maps = missing.map(member => `--map ${member}=…`).join(' and ')
  return {
    unclear:
      `The first line has no well-known heading for the ${missing.join(' and the ')} of a contact. It must be a heading;` +
      ` say with ${missing.length === 2 ? maps : `--map name=… and --map email=…`} which columns they are.`,
  }
}
