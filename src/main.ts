import { Command, InvalidArgumentError, Option } from 'commander'
import type { CheckOptions } from './cli/check.ts'
import { complain } from './cli/complain.ts'
import type { ListOptions, ReplayOptions } from './cli/deliveries.ts'
import { type ExportFormat, exportFormats, listFormats } from './cli/formats.ts'
import { settingsHelp } from './cli/help.ts'
import { version } from './compose.ts'
import { type Config, environment, readConfig } from './config.ts'
import { operatorOf } from './operator.ts'
import { deliveryStates } from './waitlist/contact.ts'
import { OperatorError } from './waitlist/ports.ts'
import { EMAIL_PATTERN } from './waitlist/signup.ts'

// Each command loads its code on demand, so that starting the service reads no other command's.
const program = new Command('waitlist')
  .description('A self-hosted early-access waitlist that never loses a signup.')
  .version(version)
  .addHelpText('after', () => `\nSettings (environment, or the file .env):\n${settingsHelp()}`)

program
  .command('serve', { isDefault: true })
  .description('take signups over HTTP until stopped')
  .allowExcessArguments()
  .action(async (_, { args: [unknown] }: Command) => {
    if (unknown !== undefined) program.error(`waitlist: there is no command ${unknown}; see waitlist help`)
    const { config, warnings } = configured()
    await (await import('./cli/serve.ts')).serve(config, warnings)
  })

program
  .command('export')
  .description('write all contacts to standard output; works beside a running service')
  .addOption(
    new Option('-f, --format <format>', 'csv, or json (one object a line)').choices(exportFormats).default('csv'),
  )
  .action(async ({ format }: { format: ExportFormat }) =>
    (await import('./cli/export.ts')).exportContacts(configured().config, format),
  )

program
  .command('backup')
  .description('copy the database to a new file; works beside a running service')
  .argument('<file>', 'where to; it must not exist')
  .action(async (file: string) => (await operatorOf(configured().config)).backUp(file))

program
  .command('move')
  .description('copy the list to another database and compare both; the service must be stopped')
  .requiredOption('--to <url>', 'an empty database: sqlite:<path> or postgres://…')
  .action(async ({ to }: { to: string }) => (await import('./cli/move.ts')).move(configured().config, to))

const deliveries = program
  .command('deliveries')
  .description('list, show and replay deliveries of contacts and events; works beside a running service')

deliveries
  .command('list', { isDefault: true })
  .description('the newest deliveries')
  .addOption(new Option('-s, --state <state>', 'only those in this state').choices(deliveryStates))
  .option('-d, --destination <name>', 'only those to this destination')
  .option('-l, --limit <n>', 'how many', wholeNumber, 50)
  .addOption(
    new Option('-f, --format <format>', 'table, or json (one object a line)').choices(listFormats).default('table'),
  )
  .action(async (options: ListOptions) =>
    (await import('./cli/deliveries.ts')).listDeliveries(configured().config, options),
  )

deliveries
  .command('show')
  .description('everything about one delivery, with the name and address of the contact')
  .argument('<number>', 'from the list', wholeNumber)
  .action(async (number: number) => (await import('./cli/deliveries.ts')).showDelivery(configured().config, number))

deliveries
  .command('replay')
  .description('attempt deliveries again, as if they were new')
  .argument('[numbers...]', 'from the list', (text, before: number[] = []) => [...before, wholeNumber(text)])
  .option('-a, --abandoned', 'all that were given up')
  .option('-d, --destination <name>', 'with --abandoned: only those to this destination')
  .action(async (numbers: number[] | undefined, options: ReplayOptions) =>
    (await import('./cli/deliveries.ts')).replayDeliveries(configured().config, numbers ?? [], options),
  )

program
  .command('check')
  .description("try the database, the provider's key and whatever else is set, and say what is wrong")
  .option('--mail <address>', 'instead, send one welcome mail there', mailAddress)
  .action(async (options: CheckOptions) => {
    const { config, warnings } = configured()
    if (!(await (await import('./cli/check.ts')).check(config, warnings, options))) process.exitCode = 1
  })

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof OperatorError)) throw error
  complain(error.message)
  process.exitCode = 1
}

/** The configuration. If there are mistakes, lists them all and ends the process. */
function configured(): { config: Config; warnings: readonly string[] } {
  const { env, unknown } = environment()
  const unknownNames = unknown.map(name => `.env has ${name}, which is not a setting of Waitlist`)
  const result = readConfig(env)
  if ('mistakes' in result) {
    complain('the settings are not right:', [...result.mistakes, ...unknownNames])
    process.exit(1)
  }
  const { config } = result
  return { config, warnings: [...config.warnings, ...unknownNames] }
}

function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(text)
}

function mailAddress(text: string): string {
  if (!new RegExp(`^${EMAIL_PATTERN}$`).test(text)) throw new InvalidArgumentError('It must be an email address.')
  return text
}
