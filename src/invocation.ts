/** How this program was started: Node's own words for it. */
export interface Invocation {
  /** As Node.js was typed, or an executable that brings it. */
  readonly argv0: string
  /** The file that is run; for such an executable the same as above. */
  readonly entry: string
}

/** What somebody types here instead of `waitlist …`, the text of a command. */
export function typedIn({ argv0, entry }: Invocation): (command: string) => string {
  const program = entry === argv0 ? argv0 : programFor(entry)
  return command => {
    const args = command.replace(/^waitlist/, '')
    // npm takes options for its own unless they follow two dashes.
    return `${program}${program.startsWith('npm run ') && /\s-/.test(args) ? ' --' : ''}${args}`
  }
}

function programFor(entry: string): string {
  const folders = entry.split(/[/\\]/)
  if (folders.includes('node_modules')) return 'npx waitlist'
  // The file itself is what npm runs in a clone. A link to it has the name that it was given on the PATH.
  return folders.at(-1) === 'waitlist.js' ? 'npm run -s waitlist' : 'waitlist'
}

/** The same where this process runs. */
export const typed = typedIn({ argv0: process.argv0, entry: process.argv[1] ?? '' })
