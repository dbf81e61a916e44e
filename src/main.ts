import { Command, CommanderError, Option } from 'commander'
import { version } from './app/version.ts'
import { loadConfig } from './config/load.ts'
import { OperatorError } from './config/operator.ts'
import type { Environment, SettingsTable } from './config/readers.ts'
import { settings } from './config/settings.ts'
import type { RemoveOptions } from './erase/command.ts'
import type { ExportOptions } from './export/command.ts'
import type { DecideOptions } from './holds/commands.ts'
import type { ImportOptions } from './import/command.ts'
import type { InviteOptions } from './invite/command.ts'
import {
  headings,
  listed,
  mailAddress,
  mailAddresses,
  mapping,
  moment,
  part,
  wholeNumber,
} from './operate/arguments.ts'
import type { CheckOptions } from './operate/check.ts'
import type { ReplayOptions } from './operate/deliveries.ts'
import { type ExitCode, fail, type Io, type ListingOptions } from './operate/output.ts'
import { contactStates, deliveryStates, holdReasons } from './signup/contact.ts'
import type { ContactFilter } from './store/contacts.ts'
import type { DeliveryFilter } from './store/deliveries.ts'

/** Runs one command line. */
export async function main(
  args: readonly string[],
  io: Io = process,
  env: Environment = process.env,
): Promise<ExitCode> {
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

/** Each command loads its code on demand, so that starting the service reads no other command's. */
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
    .addHelpText('after', '\nAll work beside a running service, except restore and load. Settings: waitlist help serve')

  const described = (command: Command, description: string, ...examples: readonly string[]) =>
    command
      .description(description)
      .addHelpText('after', `\nExamples:\n${examples.map(line => `  waitlist ${line}\n`).join('')}`)
  /** Times are in UTC unless they say otherwise. */
  const filtered = (command: Command) =>
    command
      .option('--search <text>', 'only those with this in the address or the name, whatever the case of A to Z', part)
      .option('--since <time>', 'only signups from then on: 2026-11-22, 2026-11-22T09:30Z, or 24h and 7d ago', moment)
      .option('--until <time>', 'only signups before then', moment)
      .option('--source <name>', 'only those whose utm_source, or else ref, is this')
  const byState = (command: Command) =>
    filtered(command)
      .addOption(new Option('--state <state>', 'only contacts in this state').choices(contactStates))
      .addOption(reason())
  const reason = () => new Option('--reason <reason>', 'only those that are held for this').choices(holdReasons)
  const listing = (command: Command) =>
    command.option('-l, --limit <n>', 'how many', listed, 50).option('--json', 'one JSON object a line')
  const asking = (command: Command) => command.option('--yes', 'do not ask')
  const addresses = ['[addresses...]', 'email addresses', mailAddresses, []] as const

  described(program.command('serve'), 'take signups over HTTP until stopped; what waitlist alone does, too', 'serve')
    .addHelpText('after', settingsHelp)
    .action(async () => {
      const { config, warnings, file } = await loadConfig(env)
      await (await import('./app/serve.ts')).serve(config, warnings, file)
    })
  described(
    program.command('stats'),
    'totals, signups over time, sources, pending deliveries',
    'stats',
    'stats --json | jq .today',
  )
    .option('--json', 'one JSON object')
    .action(async (options: { json?: true }) =>
      end(await (await import('./operate/stats.ts')).stats(await config(), options, io)),
    )
  listing(
    byState(
      described(program.command('list'), 'the contacts that were added last', 'list --since 24h', 'list --state held'),
    ),
  ).action(async (options: ContactFilter & ListingOptions) =>
    end(await (await import('./operate/list.ts')).list(await config(), options, io)),
  )
  described(
    program.command('show'),
    'everything that is stored about one person',
    'show ada@example.com',
    'show --json ada@example.com',
  )
    .argument('<address>', 'the email address', mailAddress)
    .option('--json', 'one JSON object, as a data request wants it: with who else has a copy')
    .action(async (address: string, options: { json?: true }) =>
      end(await (await import('./operate/show.ts')).show(await config(), address, options, io)),
    )
  byState(
    described(
      program.command('export'),
      'write contacts as CSV',
      'export --output contacts.csv',
      'export --json --since 7d',
    ),
  )
    .option('-o, --output <file>', 'write to this new file; it appears when it is complete')
    .option('--json', 'one JSON object a line, which import reads without loss')
    .action(async (options: ExportOptions) =>
      end(await (await import('./export/command.ts')).exportContacts(await config(), options, io)),
    )
  described(
    program.command('import'),
    'add contacts from a CSV or JSON Lines file',
    'import contacts.jsonl',
    'import --dry-run list.csv',
  )
    .argument('<file>', 'the file; - for standard input')
    .option('--map <member=heading>', 'which column has a name, an email and so on; can be repeated', mapping)
    .option('--ignore <heading>', 'do not refuse the file for this column; can be repeated', headings)
    .option('--dry-run', 'only say what would be done')
    .option('--announce', 'treat them like new signups: tell the provider and the destinations')
    .option('--json', 'report as one JSON object')
    .action(async (file: string, { announce, ...options }: ImportOptions & { announce?: true }) => {
      const { importFile } = await import('./import/command.ts')
      const settings = await config()
      const targets = announce ? await (await import('./app/adapters.ts')).signupTargetsOf(settings) : null
      end(await importFile(settings, file, options, targets, io))
    })
  asking(
    described(
      program.command('remove'),
      'erase one person',
      'remove ada@example.com',
      'remove --at-provider ada@example.com',
    ),
  )
    .argument('<address>', 'the email address', mailAddress)
    .option('--at-provider', 'remove them from the provider too, where it can')
    .action(async (address: string, options: RemoveOptions) => {
      const { remove } = await import('./erase/command.ts')
      const { removeAtProvider } = await import('./app/adapters.ts')
      const settings = await config()
      const removeThere = (email: string) => removeAtProvider(settings, email, new AbortController().signal)
      end(await remove(settings, address, options, removeThere, io))
    })
  asking(
    filtered(
      described(program.command('invite'), 'let listed people in, the first one first', 'invite --next 50 --dry-run'),
    ),
  )
    .argument(...addresses)
    .option('-n, --next <n>', 'the first so many of those whom the other options choose', wholeNumber)
    .option('--file <file>', 'the addresses in this file, one a line; - for standard input')
    .option('--again', 'send it again to those of these addresses who have not redeemed it')
    .option('--dry-run', 'only say who would be invited')
    .action(async (given: string[], options: InviteOptions) => {
      const { inviteContacts } = await import('./invite/command.ts')
      const settings = await config()
      const targets = await (await import('./app/adapters.ts')).invitationTargetsOf(settings)
      end(await inviteContacts(settings, given, options, targets, io))
    })
  filtered(
    described(
      program.command('release'),
      'let held signups in, as if they came now',
      'release ada@example.com',
      'release --all',
    ),
  )
    .addOption(reason())
    .argument(...addresses)
    .option('--all', 'all that are held now')
    .action(async (given: string[], options: DecideOptions) => {
      const { releaseHeld } = await import('./holds/commands.ts')
      const settings = await config()
      const targets = await (await import('./app/adapters.ts')).signupTargetsOf(settings)
      end(await releaseHeld(settings, given, options, targets, io))
    })
  asking(
    filtered(
      described(program.command('discard'), 'delete held signups, who may sign up again', 'discard --search casino'),
    ),
  )
    .addOption(reason())
    .argument(...addresses)
    .option('--all', 'all that are held now')
    .action(async (given: string[], options: DecideOptions) =>
      end(await (await import('./holds/commands.ts')).discardHeld(await config(), given, options, io)),
    )
  const deliveries = listing(
    described(program.command('deliveries'), 'the newest deliveries', 'deliveries --state abandoned'),
  )
    .enablePositionalOptions()
    .addOption(new Option('--state <state>', 'only those in this state').choices(deliveryStates))
    .option('--destination <name>', 'only those to this destination')
    .action(async (options: DeliveryFilter & ListingOptions) =>
      end(await (await import('./operate/deliveries.ts')).deliveries(await config(), options, io)),
    )
  deliveries
    .command('replay')
    .description('attempt deliveries again, as if they were new')
    .argument('[numbers...]', 'from the listing', (text, before: number[]) => [...before, wholeNumber(text)], [])
    .option('--abandoned', 'all that were abandoned')
    .option('--destination <name>', 'with --abandoned: only those to this destination')
    .action(async (numbers: number[], options: ReplayOptions) =>
      end(await (await import('./operate/deliveries.ts')).replayDeliveries(await config(), numbers, options, io)),
    )
  described(
    program.command('check'),
    'try everything that is set, and say what is wrong',
    'check',
    'check --mail you@example.com',
  )
    .option('--quiet', 'print only what is wrong')
    .option('--send-test', 'send the webhook, the chats and OWNER_MAIL a test message')
    .option('--mail <address>', 'instead, send one mail there, with a dummy code and dummy links', mailAddress)
    .addOption(
      new Option('--letter <letter>', 'with --mail: which one')
        .choices(['welcome', 'invite', 'confirm'])
        .default('welcome'),
    )
    .option('--json', 'one JSON object')
    .action(async (options: CheckOptions) => {
      const { config, warnings } = await loadConfig(env)
      const { checkAll, checkMail } = await import('./app/checks.ts')
      const { mail, letter, sendTest } = options
      const tried = mail === undefined ? await checkAll(config, sendTest) : [await checkMail(config, mail, letter)]
      const notes = warnings.map(why => ({ what: 'settings', is: 'note', why }) as const)
      end(await (await import('./operate/check.ts')).report([...notes, ...tried], options, io))
    })
  described(program.command('backup'), 'copy the SQLite database to a new file', 'backup waitlist-backup.db')
    .argument('<file>', 'where to; it must not exist')
    .action(async (file: string) => end(await (await import('./operate/backup.ts')).backUp(await config(), file, io)))
  described(
    program.command('restore'),
    'put a backup in the place of the database, which is kept',
    'restore waitlist-backup.db',
  )
    .argument('[file]', 'the backup; none after pg_restore, to take erased people out again')
    .action(async (file: string | undefined) =>
      end(await (await import('./operate/backup.ts')).restore(await config(), file, io)),
    )
  described(
    program.command('dump'),
    'write the whole list to a new file that either engine can load',
    'dump waitlist.jsonl',
  )
    .argument('<file>', 'where to; it must not exist')
    .action(async (file: string) => end(await (await import('./operate/dump.ts')).dumpTo(await config(), file, io)))
  described(program.command('load'), 'load a dump into an empty database', 'load waitlist.jsonl')
    .argument('<file>', 'the dump')
    .action(async (file: string) => end(await (await import('./operate/dump.ts')).loadFrom(await config(), file, io)))
  return program

  async function config() {
    return (await loadConfig(env)).config
  }
}

const settingsHelp = () => {
  const rows = Object.entries(settings as SettingsTable).map(([name, { meaning, default: standard }]) => {
    return `  ${name.padEnd(22)} ${meaning}${standard === undefined ? '' : ` [${standard}]`}\n`
  })
  return `\nSettings, from the environment or the file .env (those of email tools: docs/providers.md):\n${rows.join('')}`
}
