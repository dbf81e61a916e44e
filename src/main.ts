import { Command, Option } from 'commander'
import { version } from './app/compose.ts'
import { assignments, mailAddress, mailAddresses, moment, part, wholeNumber } from './cli/arguments.ts'
import type { CheckOptions } from './cli/check.ts'
import { complain, fail, MISUSED } from './cli/console.ts'
import type { ContactsOptions } from './cli/contacts.ts'
import type { ListOptions, ReplayOptions } from './cli/deliveries.ts'
import type { ExportOptions } from './cli/export.ts'
import { exportFormats, listFormats } from './cli/formats.ts'
import type { DecideOptions, HeldOptions } from './cli/held.ts'
import type { ImportOptions } from './cli/import.ts'
import type { InviteOptions } from './cli/invite.ts'
import type { RemoveOptions } from './cli/remove.ts'
import type { StatsOptions } from './cli/stats.ts'
import { type Config, readConfig } from './config/config.ts'
import { environment } from './config/environment.ts'
import { allVendors, type SettingsTable, settings } from './config/settings.ts'
import { contactStates, deliveryStates, holdReasons } from './signup/contact.ts'
import { OperatorError } from './waitlist/ports/log.ts'

// Each command loads its code on demand, so that starting the service reads no other command's.
const program = new Command('waitlist')
  .description('A self-hosted early-access waitlist that never loses a signup.')
  .version(version)
  .configureOutput({ outputError: (text, write) => write(text.replace(/^error:/, 'waitlist:')) })
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : MISUSED))

const examples = (...lines: readonly string[]): string =>
  `\nExamples:\n${lines.map(line => `  waitlist ${line}\n`).join('')}`

program
  .command('serve')
  .description('take signups over HTTP until stopped; what waitlist alone does, too')
  .addHelpText('after', examples('serve'))
  .action(async () => {
    const { config, warnings, file } = await configured()
    await (await import('./cli/serve.ts')).serve(config, warnings, file)
  })

/** Which signups a command is about. Times are in UTC unless they say otherwise. */
const ofSignups = (command: Command): Command =>
  command
    .option(
      '--search <text>',
      'only those with this text in the address or the name, whatever the case of A to Z',
      part,
    )
    .option('--since <time>', 'only signups from then on: 2026-11-22, 2026-11-22T09:30Z, or 24h and 7d ago', moment)
    .option('--until <time>', 'only signups before then', moment)
    .option('--source <name>', 'only those whose utm_source, or else ref, is this')

const filtered = (command: Command): Command =>
  ofSignups(command).addOption(new Option('--state <state>', 'only contacts in this state').choices(contactStates))

const asked = ['--yes', 'do not ask'] as const

program
  .command('stats')
  .description('how many joined, when and from where, and what waits')
  .option('--json', 'one JSON object')
  .addHelpText(
    'after',
    `
A day begins at midnight in the time zone TZ; the last 7 and 30 days are today and those before.
The JSON has at, timezone, total, listed, pending, invited, redeemed, held, unconfirmed, today, last7Days,
  last30Days, sourced
  perMinute, perHour   [{from, count}], the last 60 and 48
  perDay               [{day, from, count}], the last 30
  sources              [{source, count}], the 20 largest
  deliveries           [{destination, state, count, oldest, why}]
${examples('stats', 'stats --json | jq .today')}`,
  )
  .action(async (options: StatsOptions) => (await import('./cli/stats.ts')).stats(await config(), options))

filtered(program.command('list').description('the contacts that were added last; exit code 1 if there are none'))
  .option('-l, --limit <n>', 'how many', wholeNumber, 50)
  .option('--json', 'one JSON object a line')
  .addHelpText('after', examples('list', 'list --search example.com --since 24h', 'list --state pending --json'))
  .action(async (options: ContactsOptions) => (await import('./cli/contacts.ts')).listContacts(await config(), options))

program
  .command('show')
  .description('one contact with its history and deliveries; exit code 1 if there is none')
  .argument('[address]', 'the email address', mailAddress)
  .option('--code <code>', 'instead, the contact that was invited with this code')
  .option('--json', 'one JSON object')
  .addHelpText('after', examples('show ada@example.com', 'show --code 9Hk2xT0bQ5mZr7LwVc3yNg'))
  .action(async (address: string | undefined, options: { code?: string; json?: true }) =>
    (await import('./cli/contacts.ts')).showContact(await config(), address, options),
  )

program
  .command('person')
  .description(
    'everything that is stored about one person, as JSON, for a data request; exit code 1 if there is nothing',
  )
  .argument('<address>', 'the email address', mailAddress)
  .addHelpText('after', examples('person ada@example.com > ada.json'))
  .action(async (address: string) => (await import('./cli/contacts.ts')).showPerson(await config(), address))

filtered(program.command('export').description('write contacts to standard output'))
  .addOption(
    new Option('-f, --format <format>', 'csv, or json (one object a line)').choices(exportFormats).default('csv'),
  )
  .option('-o, --output <file>', 'write there instead; it must not exist, and appears when it is complete')
  .option('--no-bom', 'CSV without the byte order mark that tells Excel it is UTF-8')
  .addHelpText(
    'after',
    examples('export --output contacts.csv', 'export --format json --output contacts.jsonl --since 7d'),
  )
  .action(async (options: ExportOptions) => (await import('./cli/export.ts')).exportContacts(await config(), options))

program
  .command('import')
  .description('add contacts from a CSV or JSON Lines file, ours or that of another tool')
  .argument('<file>', 'the file; - for standard input')
  .option('--map <member=column>', 'which column has a name, an email and so on; can be repeated', assignments)
  .option('--dry-run', 'only say what would be done')
  .option('--announce', 'treat them like new signups: tell the provider and the destinations')
  .option('--json', 'report as one JSON object')
  .addHelpText(
    'after',
    `\nExit code: 0 if every line is a contact, 1 if some are not (the others are added), 2 if the command makes no sense.\n` +
      examples('import contacts.csv', 'import --dry-run --map name="First name" --map email=Email subscribers.csv'),
  )
  .action(async (file: string, options: ImportOptions) =>
    (await import('./cli/import.ts')).importContacts(await config(), file, options),
  )

program
  .command('remove')
  .description('erase one person from the database')
  .argument('<address>', 'the email address', mailAddress)
  .option('--at-provider', 'remove them from the provider too, where it can')
  .option(...asked)
  .addHelpText('after', examples('remove ada@example.com', 'remove --yes --at-provider ada@example.com'))
  .action(async (address: string, options: RemoveOptions) =>
    (await import('./cli/remove.ts')).removePerson(await config(), address, options),
  )

/** Which held signups a command is about. */
const ofHeld = (command: Command): Command =>
  command
    .addOption(new Option('--reason <reason>', 'only those that are held for this').choices(holdReasons))
    .option('--search <text>', 'only those with this in their name or address', part)
    .option('--before <time>', 'only those who signed up before then: 2026-11-22T09:30Z, or 24h and 7d ago', moment)

/** Addresses as arguments, as many as are given. */
const addresses = ['[addresses...]', 'email addresses', mailAddresses] as const

ofHeld(program.command('held').description('the signups that are held, for what and from where, and those added last'))
  .option('-l, --limit <n>', 'how many of them are listed', wholeNumber, 50)
  .option('--json', 'one JSON object')
  .addHelpText(
    'after',
    `
The JSON has total, since,
  reasons    [{reason, count}]
  contacts   those added last, as in an export
${examples('held', 'held --reason same-mailbox --limit 200', 'held --json | jq .total')}`,
  )
  .action(async (options: HeldOptions) => (await import('./cli/held.ts')).listHeld(await config(), options))

ofHeld(program.command('release').description('let held signups in, as if they came now, the first one first'))
  .argument(...addresses)
  .option('--all', 'all that are held now')
  .addHelpText(
    'after',
    examples('release ada@example.com bob@example.com', 'release --reason unverified --before 1h', 'release --all'),
  )
  .action(async (given: string[] | undefined, options: DecideOptions) =>
    (await import('./cli/held.ts')).releaseHeld(await config(), given ?? [], options),
  )

ofHeld(program.command('discard').description('delete held signups; the same addresses may sign up again'))
  .argument(...addresses)
  .option('--all', 'all that are held now')
  .option(...asked)
  .addHelpText('after', examples('discard eve@example.com', 'discard --yes --search casino', 'discard --all'))
  .action(async (given: string[] | undefined, options: DecideOptions & { yes?: true }) =>
    (await import('./cli/held.ts')).discardHeld(await config(), given ?? [], options),
  )

ofSignups(program.command('invite').description('let in those who are listed: they get a code; the first one first'))
  .argument(...addresses)
  .option('-n, --next <n>', 'the first so many, of those whom the other options choose', wholeNumber)
  .option('--file <file>', 'the addresses in this file, one a line; - for standard input')
  .option('--dry-run', 'only say who would be invited')
  .option(...asked)
  .addHelpText(
    'after',
    `
Those who are held, pending or invited already are left out. Exit code 1 if a given address is not on the list, held or pending.
${examples('invite --next 50', 'invite --next 50 --source hn --dry-run', 'invite ada@example.com', 'invite --yes --file first.txt')}`,
  )
  .action(async (given: string[] | undefined, options: InviteOptions) =>
    (await import('./cli/invite.ts')).invite(await config(), given ?? [], options),
  )

program
  .command('backup')
  .description('copy the database to a new file')
  .argument('<file>', 'where to; it must not exist')
  .addHelpText('after', examples('backup waitlist-backup.db'))
  .action(async (file: string) => (await import('./cli/backup.ts')).backUp(await config(), file))

program
  .command('restore')
  .description('put a backup in the place of the database, which is kept beside it; the service must be stopped')
  .argument(
    '[file]',
    'the backup; none after pg_restore, when erased people have to be taken out of the database again',
  )
  .addHelpText('after', examples('restore waitlist-backup.db'))
  .action(async (file: string | undefined) => (await import('./cli/backup.ts')).restore(await config(), file))

program
  .command('dump')
  .description('write the whole list to a new file that SQLite and PostgreSQL can load')
  .argument('<file>', 'where to; it must not exist')
  .addHelpText('after', examples('dump waitlist.jsonl'))
  .action(async (file: string) => (await import('./cli/backup.ts')).dumpTo(await config(), file))

program
  .command('load')
  .description('load a dump into a database that is empty; the service must be stopped')
  .argument('<file>', 'the dump')
  .addHelpText('after', examples('load waitlist.jsonl'))
  .action(async (file: string) => (await import('./cli/backup.ts')).loadFrom(await config(), file))

const deliveries = program.command('deliveries').description('list, show and replay deliveries of contacts and events')

deliveries
  .command('list', { isDefault: true })
  .description('the newest deliveries')
  .addOption(new Option('-s, --state <state>', 'only those in this state').choices(deliveryStates))
  .option('-d, --destination <name>', 'only those to this destination')
  .option('-l, --limit <n>', 'how many', wholeNumber, 50)
  .addOption(
    new Option('-f, --format <format>', 'table, or json (one object a line)').choices(listFormats).default('table'),
  )
  .addHelpText('after', examples('deliveries', 'deliveries list --state abandoned --destination webhook'))
  .action(async (options: ListOptions) => (await import('./cli/deliveries.ts')).listDeliveries(await config(), options))

deliveries
  .command('show')
  .description('everything about one delivery, with the name and address of the contact')
  .argument('<number>', 'from the list', wholeNumber)
  .addHelpText('after', examples('deliveries show 17'))
  .action(async (number: number) => (await import('./cli/deliveries.ts')).showDelivery(await config(), number))

deliveries
  .command('replay')
  .description('attempt deliveries again, as if they were new')
  .argument('[numbers...]', 'from the list', (text, before: number[] = []) => [...before, wholeNumber(text)])
  .option('-a, --abandoned', 'all that were abandoned')
  .option('-d, --destination <name>', 'with --abandoned: only those to this destination')
  .addHelpText('after', examples('deliveries replay 17 18', 'deliveries replay --abandoned --destination webhook'))
  .action(async (numbers: number[] | undefined, options: ReplayOptions) =>
    (await import('./cli/deliveries.ts')).replayDeliveries(await config(), numbers ?? [], options),
  )

program
  .command('check')
  .description(
    "try the database, the public address, the provider's key and everything else that is set, and say what is wrong; exit code 1 if anything is",
  )
  .option('--send-test', 'send the webhook, the chats and OWNER_MAIL a test message, too')
  .option('--mail <address>', 'instead, send one mail there, with a dummy code and dummy links', mailAddress)
  .addOption(
    new Option('--letter <letter>', 'with --mail: which one')
      .choices(['welcome', 'invite', 'confirm'])
      .default('welcome'),
  )
  .option('--json', 'one JSON object')
  .addHelpText('after', examples('check', 'check --send-test', 'check --mail you@example.com --letter invite'))
  .action(async (options: CheckOptions) => {
    const { config, warnings } = await configured()
    if (!(await (await import('./cli/check.ts')).check(config, warnings, options))) process.exitCode = 1
  })

const given = process.argv.slice(2)
const chosen = program.commands.find(command => command.name() === given[0])
// Only this help names every setting, which loads every vendor.
if (chosen === undefined && given.length > 0) {
  const beside = 'All work beside a running service, except restore and load.'
  const settings = `Settings (environment, or the file .env):\n${await settingsHelp()}`
  program.addHelpText('after', `\n${beside}\n\n${settings}`)
}
try {
  await program.parseAsync(given.length === 0 ? ['serve'] : given, { from: 'user' })
} catch (error) {
  if (!(error instanceof OperatorError)) throw error
  fail(error.message)
}

async function config(): Promise<Config> {
  return (await configured()).config
}

/** The configuration, and the file that it comes from too. If there are mistakes, lists them all and ends the process. */
async function configured(): Promise<{ config: Config; warnings: readonly string[]; file: string | null }> {
  const { env, file, misnamed } = await environment()
  const result = await readConfig(env)
  if ('mistakes' in result) {
    complain('the settings are not right:', [...result.mistakes, ...misnamed])
    process.exit(1)
  }
  const { config } = result
  return { config, warnings: [...config.warnings, ...misnamed], file }
}

/** All settings, a line each, with the providers' settings under their names. */
async function settingsHelp(): Promise<string> {
  const ofVendors = Object.entries(await allVendors()).map(([vendor, { title, settings }]) => {
    return `\nWith PROVIDER=${vendor} (${title}; docs/providers.md says where the values are found):\n${rows(settings)}`
  })
  return rows(settings) + ofVendors.join('')
}

function rows(table: SettingsTable): string {
  return Object.entries(table)
    .map(([name, { meaning, required, default: standard, unset }]) => {
      const note = required ? 'required' : (standard ?? unset)
      return `  ${name.padEnd(28)} ${meaning}${note === undefined ? '' : ` [${note}]`}\n`
    })
    .join('')
}
