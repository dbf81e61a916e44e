import { Command, Option } from 'commander'
import { complain } from './cli/complain.ts'
import { exportContacts, type Format, formats } from './cli/export.ts'
import { serve } from './cli/serve.ts'
import { backUpTo, version } from './compose.ts'
import { type Config, environment, readConfig } from './config.ts'
import { settings } from './settings.ts'
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
  .action((file: string) => backUpTo(configured().config, file))

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

function settingsHelp(): string {
  const rows = Object.entries(settings).map(([name, { meaning, ...setting }]) => {
    return `  ${name.padEnd(24)} ${meaning}${'default' in setting ? ` [${setting.default}]` : ''}`
  })
  return `${rows.join('\n')}\n`
}
