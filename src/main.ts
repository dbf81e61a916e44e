import { Command, InvalidArgumentError, Option } from 'commander'
import { check } from './cli/check.ts'
import { complain } from './cli/complain.ts'
import {
  type ListOptions,
  listDeliveries,
  listFormats,
  type ReplayOptions,
  replayDeliveries,
  showDelivery,
} from './cli/deliveries.ts'
import { exportContacts, type Format, formats } from './cli/export.ts'
import { settingsHelp } from './cli/help.ts'
import { move } from './cli/move.ts'
import { serve } from './cli/serve.ts'
import { recordsOf, version } from './compose.ts'
import { type Config, environment, readConfig } from './config.ts'
import { deliveryStates } from './waitlist/contact.ts'
import { CannotOpen } from './waitlist/ports.ts'

const program = new Command('waitlist')
  .description('A self-hosted early-access waitlist that never loses a signup.')
  .version(version)
  .addHelpText('after', `\nSettings (environment, or the file .env):\n${settingsHelp()}`)

program
  .command('serve', { isDefault: true })
  .description('take signups over HTTP until stopped')
  .allowExcessArguments()
  .action((_, { args: [unknown] }: Command) => {
    if (unknown !== undefined) program.error(`waitlist: there is no command ${unknown}; see waitlist help`)
    const { config, warnings } = configured()
    return serve(config, warnings)
  })

program
  .command('export')
  .description('write all contacts to standard output; works beside a running service')
  .addOption(new Option('-f, --format <format>', 'csv, or json (one object a line)').choices(formats).default('csv'))
  .action(({ format }: { format: Format }) => exportContacts(configured().config, format))

program
  .command('backup')
  .description('copy the database to a new file; works beside a running service')
  .argument('<file>', 'where to; it must not exist')
  .action(async (file: string) => (await recordsOf(configured().config)).backUp(file))

program
  .command('move')
  .description('copy the list to another database and compare both; the service must be stopped')
  .requiredOption('--to <url>', 'sqlite:<path> or postgres://…: empty, or where an earlier move has ended')
  .action(({ to }: { to: string }) => move(configured().config, to))

const deliveries = program
  .command('deliveries')
  .description('list, show and replay what was told about new contacts; works beside a running service')

deliveries
  .command('list', { isDefault: true })
  .description('the newest deliveries')
  .addOption(new Option('-s, --state <state>', 'only those in this state').choices(deliveryStates))
  .option('-d, --destination <name>', 'only those to this destination')
  .option('-l, --limit <n>', 'how many', wholeNumber, 50)
  .addOption(
    new Option('-f, --format <format>', 'table, or json (one object a line)').choices(listFormats).default('table'),
  )
  .action((options: ListOptions) => listDeliveries(configured().config, options))

deliveries
  .command('show')
  .description('all about one delivery, with the name and the address of the contact')
  .argument('<number>', 'from the list', wholeNumber)
  .action((number: number) => showDelivery(configured().config, number))

deliveries
  .command('replay')
  .description('attempt deliveries again, as if they were new')
  .argument('[numbers...]', 'from the list', (text, before: number[] = []) => [...before, wholeNumber(text)])
  .option('-a, --abandoned', 'all that were given up')
  .option('-d, --destination <name>', 'with --abandoned: only those to this destination')
  .action((numbers: number[] | undefined, options: ReplayOptions) =>
    replayDeliveries(configured().config, numbers ?? [], options),
  )

program
  .command('check')
  .description("try the database, the provider's key and whatever else is set, and say what is wrong")
  .action(async () => {
    const { config, warnings } = configured()
    if (!(await check(config, warnings))) process.exitCode = 1
  })

try {
  await program.parseAsync()
} catch (error) {
  if (!(error instanceof CannotOpen)) throw error
  complain(error.message)
  process.exitCode = 1
}

/** The configuration, or the end of the process with a list of all mistakes. */
function configured(): { config: Config; warnings: readonly string[] } {
  const { env, unknown } = environment()
  const unknownNames = unknown.map(name => `.env has ${name}, which is no setting of Waitlist`)
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
