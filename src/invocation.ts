/** How this program was started: Node's own words for it. */
export interface Invocation {
  /** The file that was run; the executable itself, if it brings its Node.js. */
  readonly entry: string
  readonly execPath: string
  /** The executable as it was typed. */
  readonly argv0: string
}

/** What somebody types here instead of `waitlist …`, the text of a command. */
export function typedIn({ entry, execPath, argv0 }: Invocation): (command: string) => string {
  const program = programIn(entry, execPath, argv0)
  return command => {
    const args = command.replace(/^waitlist/, '')
    // npm takes options for its own unless they follow two dashes.
    return `${program}${program.startsWith('npm run ') && /\s-/.test(args) ? ' --' : ''}${args}`
  }
}

function programIn(entry: string, execPath: string, argv0: string): string {
  if (entry === execPath) return argv0
  const folders = entry.split(/[/\\]/)
  if (folders.includes('node_modules')) return 'npx waitlist'
  // The file itself is what npm runs in a clone. A link to it has the name that it was given on the PATH.
  return folders.at(-1) === 'waitlist.js' ? 'npm run -s waitlist' : 'waitlist'
}

/** The same where this process runs. */
export const typed = typedIn({ entry: process.argv[1] ?? '', execPath: process.execPath, argv0: process.argv0 })
