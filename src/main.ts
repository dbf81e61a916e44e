import { Command, CommanderError, Option } from 'commander'
import { type Config, loadConfig, version } from './config/load.ts'
import { OperatorError } from './config/operator.ts'
import type { Environment, SettingsTable } from './config/readers.ts'
import { settings } from './config/settings.ts'
import type { RemoveOptions } from './erase/command.ts'
import { listed, mailAddress, mapping, moment, part, several, wholeNumber } from './operate/arguments.ts'
import { type ExitCode, fail, type Io } from './operate/output.ts'
import { contactStates, deliveryStates, holdReasons } from './signup/contact.ts'

/** Runs one command line. */
export async function main(
  args: readonly string[],
  io: Io = process,
  env: Environment = process.env,
): Promise<ExitCode> {
  // What it writes are names and addresses.
  process.umask(0o077)
  try {
    let code: ExitCode = 0
    const program = commands(io, env, result => {
      code = result
    })
    await program.parseAsync(args.length === 0 ? ['serve'] : [...args], { from: 'user' })
    return code
  } catch (error) {
    // Commander has said what is wrong, or has shown its help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof OperatorError) return fail(io, error.message, error.details)
    throw error
  }
}

/** A command: its arguments come after the configuration, then its options if it has some, then `Io`. */
// biome-ignore lint/suspicious/noExplicitAny: Commander does not know the types of what it has read
type Run = (config: Config, ...rest: any[]) => Promise<ExitCode>

function commands(io: Io, env: Environment, end: (code: ExitCode) => void): Command {
  const program = new Command('waitlist')
    .description('A self-hosted early-access waitlist that never loses a signup.')
    .version(version)
    .configureOutput({
      writeOut: text => io.stdout.write(text),
      writeErr: text => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error:/, 'waitlist:')),
    })
    .exitOverride()
    .enablePositionalOptions()
    .addHelpText(
      'after',
      '\nWithout a command it serves. All but restore and load work beside a service. Settings: waitlist help serve',
    )

  const described = (command: Command, description: string, ...examples: readonly string[]) =>
    command
      .description(description)
      .addHelpText('after', `\nExamples:\n${examples.map(line => `  waitlist ${line}\n`).join('')}`)
  /** Code is loaded on demand, so that starting the service reads that of no other command. */
  const run = (load: () => Promise<Run>) =>
    async function (this: Command): Promise<void> {
      const act = await load()
      const { config } = await loadConfig(env)
      const options = this.options.length === 0 ? [] : [this.opts()]
      end(await act(config, ...this.processedArgs, ...options, io))
    }

  /** Times are in UTC unless they say otherwise. */
  const filtered = (command: Command) =>
    command
      .option('--search <text>', 'only those with this in the address or the name, whatever the case of A to Z', part)
      .option('--since <time>', 'only signups from then on: 2026-11-22, 2026-11-22T09:30Z, or 24h and 7d ago', moment)
      .option('--until <time>', 'only signups before then', moment)
      .option('--source <name>', 'only those whose utm_source, or else ref, is this')
  const byReason = (command: Command) =>
    filtered(command).addOption(
      new Option('--reason <reason>', 'only those that are held for this').choices(holdReasons),
    )
  const byState = (command: Command) =>
    byReason(command).addOption(new Option('--state <state>', 'only contacts in this state').choices(contactStates))
  const listing = (command: Command) =>
    command.option('-l, --limit <n>', 'how many', listed, 50).option('--json', 'one JSON object a line')
  const addresses = ['[addresses...]', 'email addresses', several(mailAddress), []] as const
  const unasked = ['--yes', 'do not ask'] as const

  described(program.command('serve'), 'take signups over HTTP until stopped', 'serve')
    .addHelpText('after', settingsHelp)
    .action(async () => {
      const { config, file } = await loadConfig(env)
      await (await import('./app/serve.ts')).serve(config, file)
    })
  described(program.command('stats'), 'totals, signups by day, sources, deliveries', 'stats --json')
    .option('--json', 'one JSON object')
    .action(run(async () => (await import('./operate/stats.ts')).stats))
  listing(byState(described(program.command('list'), 'the contacts that were added last', 'list --since 24h'))).action(
    run(async () => (await import('./operate/contacts.ts')).list),
  )
  described(program.command('show'), 'everything that is stored about one person', 'show ada@example.com')
    .argument('<address>', 'the email address', mailAddress)
    .option('--json', 'one JSON object, as a data request wants it: with who else has a copy')
    .action(run(async () => (await import('./operate/contacts.ts')).show))
  byState(described(program.command('export'), 'write contacts as CSV', 'export --output contacts.csv'))
    .option('-o, --output <file>', 'write to this new file; it appears when it is complete')
    .option('--json', 'one JSON object a line')
    .action(run(async () => (await import('./export/command.ts')).exportContacts))
  described(program.command('import'), 'add the contacts of a CSV file', 'import --dry-run list.csv')
    .argument('<file>', 'the file; - for standard input')
    .option('--map <member=heading>', 'which column has a name, an email and so on; can be repeated', mapping)
    .option('--ignore <heading>', 'do not refuse the file for this column; can be repeated', several(String))
    .option('--dry-run', 'only say what would be done')
    .option('--announce', 'treat them like new signups: tell the provider and the destinations')
    .action(run(async () => (await import('./import/command.ts')).importFile))
  described(program.command('remove'), 'erase one person', 'remove --at-provider ada@example.com')
    .argument('<address>', 'the email address', mailAddress)
    .option('--at-provider', 'remove them from the provider too, where it can')
    .option(...unasked)
    .action(
      run(async () => {
        const { remove } = await import('./erase/command.ts')
        const { openProvider } = await import('./providers/open.ts')
        return (config, address: string, options: RemoveOptions, io: Io) => {
          const removeThere = (email: string) =>
            openProvider(config.provider!).remove(email, new AbortController().signal)
          return remove(config, address, options, removeThere, io)
        }
      }),
    )
  filtered(described(program.command('invite'), 'let listed people in, the first one first', 'invite --next 50'))
    .argument(...addresses)
    .option('-n, --next <n>', 'the first so many of those whom the other options choose', wholeNumber)
    .option('--again', 'send it again to those of these addresses who have not redeemed it')
    .option('--dry-run', 'only say who would be invited')
    .option(...unasked)
    .action(run(async () => (await import('./invite/command.ts')).inviteContacts))
  byReason(described(program.command('release'), 'let held signups in, as if they came now', 'release --all'))
    .argument(...addresses)
    .option('--all', 'all that are held now')
    .action(run(async () => (await import('./holds/commands.ts')).releaseHeld))
  byReason(described(program.command('discard'), 'delete held signups, who may sign up again', 'discard --all'))
    .argument(...addresses)
    .option('--all', 'all that are held now')
    .option(...unasked)
    .action(run(async () => (await import('./holds/commands.ts')).discardHeld))
  listing(described(program.command('deliveries'), 'the newest deliveries', 'deliveries --state abandoned'))
    .enablePositionalOptions()
    .addOption(new Option('--state <state>', 'only those in this state').choices(deliveryStates))
    .option('--destination <name>', 'only those to this destination')
    .action(run(async () => (await import('./operate/deliveries.ts')).deliveries))
    .command('replay')
    .description('attempt deliveries again, as if they were new')
    .argument('[numbers...]', 'from the listing', several(wholeNumber), [])
    .option('--abandoned', 'all that were abandoned')
    .option('--destination <name>', 'with --abandoned: only those to this destination')
    .action(run(async () => (await import('./operate/deliveries.ts')).replayDeliveries))
  described(program.command('check'), 'try what is set, and say what is wrong', 'check --quiet')
    .option('--quiet', 'print only what is wrong')
    .option('--send-test', 'send the webhook, the chats and OWNER_MAIL a test message')
    .option('--mail <address>', 'instead, send one mail there, with a dummy code and dummy links', mailAddress)
    .addOption(
      new Option('--letter <letter>', 'with --mail: which one')
        .choices(['welcome', 'invite', 'confirm'])
        .default('welcome'),
    )
    .option('--json', 'one JSON object')
    .action(run(async () => (await import('./app/check.ts')).check))
  described(program.command('backup'), 'copy the SQLite database to a new file', 'backup waitlist-backup.db')
    .argument('<file>', 'where to; it must not exist')
    .action(run(async () => (await import('./operate/copies.ts')).backUp))
  described(program.command('restore'), 'put a backup in the place of the database', 'restore waitlist-backup.db')
    .argument('[file]', 'the backup; none after pg_restore, to take erased people out again')
    .action(run(async () => (await import('./operate/copies.ts')).restore))
  described(program.command('dump'), 'write the whole list, for either engine', 'dump waitlist.jsonl')
    .argument('<file>', 'where to; it must not exist')
    .action(run(async () => (await import('./operate/copies.ts')).dumpTo))
  described(program.command('load'), 'load a dump into an empty database', 'load waitlist.jsonl')
    .argument('<file>', 'the dump')
    .action(run(async () => (await import('./operate/copies.ts')).loadFrom))
  return program
}

const settingsHelp = () => {
  const rows = Object.entries(settings as SettingsTable).map(([name, { meaning, default: standard }]) => {
    return `  ${name.padEnd(22)} ${meaning}${standard === undefined ? '' : ` [${standard}]`}\n`
  })
  return `\nSettings, from the environment or the file .env (those of email tools: docs/providers.md):\n${rows.join('')}`
}
