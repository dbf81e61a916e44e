import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseEnv, promisify } from 'node:util'
import { readConfig } from '../src/config/config.ts'
import { settings as ownSettings } from '../src/config/settings.ts'
import { addressRefused, providerUnreachable, savedForLater } from '../src/http/wire/refusals.ts'
import type { Rate } from '../src/outbound/pace.ts'
import { allVendors, vendorNames } from '../src/providers/list.ts'
import { sqliteStore } from '../src/stores/sqlite/store.ts'
import { handOverSchedule, untilNext } from '../src/waitlist/delivery/retry.ts'
import { signup } from './contracts/store.ts'
import { temporaryFolder } from './harness/folder.ts'
import { startReceiver } from './harness/receiver.ts'
import { loopsFake, loopsSettings } from './providers/loops.fake.ts'

const vendors = await allVendors()

const root = fileURLToPath(new URL('..', import.meta.url))
const text = readFileSync(join(root, 'docs', 'providers.md'), 'utf8')
const flat = text.replaceAll(/\s+/g, ' ')
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block]) => block!)

/** The part under a heading, up to the next one. */
const under = (heading: string): string => {
  const [, part] = text.split(`\n## ${heading}\n`)
  assert.ok(part !== undefined, `there is no heading ${heading}`)
  return part.split('\n## ')[0]!
}
const rowsOf = (part: string) => [...part.matchAll(/^\|(.*)\|$/gm)].slice(2).map(([, row]) => row!.trim())

const MINUTE = 60_000
const DAY = 86_400_000
const spans = { 'a second': 1_000, 'in 10 seconds': 10_000, 'a minute': MINUTE } as const

function paceOf({ calls, per, connections }: Rate): string {
  const [span] = Object.entries(spans).find(([, milliseconds]) => milliseconds === per)!
  return `${calls} calls ${span}, ${connections} at once`
}

/** What the table says of a repetition, and what stands under "Cannot promise". */
const repetitions = new Map<number | null, readonly [inTable: string, inWords: RegExp | null]>([
  [Number.POSITIVE_INFINITY, ['always', null]],
  [365 * DAY, ['for a year', /again after more than a year/]],
  [DAY, ['for a day', /again after more than a day/]],
  [0, ['no', /was sent twice/]],
  [null, ['nothing to start', null]],
])

test('the table of promises is that of the program', () => {
  const rows = vendorNames.map(name => {
    const { title, promises, rate } = vendors[name]
    return [
      `[${title}](#${title.toLowerCase().replaceAll(/[^a-z]/g, '')})`,
      promises.newness,
      promises.scope === 'list' ? 'on the list' : 'in the account',
      promises.recognisesOwn ? 'yes' : 'no',
      repetitions.get(promises.repeatable)![0],
      promises.namesEvents ? 'yes' : 'no',
      promises.removal,
      paceOf(rate),
    ].join(' | ')
  })
  assert.deepEqual(rowsOf(under('What each can promise')), rows)
})

for (const name of vendorNames) {
  const { title, settings, promises, rate } = vendors[name]

  describe(`docs/providers.md about ${title}`, () => {
    const part = under(title)
    /** What follows `**Created:**` and the like, on one line. */
    const said = (about: string): string => {
      const [, words] = new RegExp(`^- \\*\\*${about}:\\*\\* (.*(?:\\n  .*)*)`, 'm').exec(part) ?? []
      assert.ok(words, `${title} lacks ${about}`)
      return words.replaceAll(/\s+/g, ' ')
    }

    test('has the settings of the program', () => {
      const rows = Object.entries(settings).map(([setting, { required, default: standard, meaning, where }]) => {
        const value = required ? 'required' : standard === undefined ? '–' : `\`${standard}\``
        return `\`${setting}\` | ${value} | ${meaning} | ${where}`
      })
      assert.deepEqual(rowsOf(part), rows)
      assert.ok(part.includes(`\`PROVIDER=${name}\``))
      const known = [...Object.keys(settings), ...Object.keys(ownSettings)]
      for (const [each] of part.matchAll(/\b[A-Z]+_[A-Z_]+\b/g))
        assert.ok(known.includes(each), `${each} is no setting`)
    })

    test('says what becomes of a person who is removed', () => {
      const words = said('Removal')
      assert.ok(words.length > 40)
      assert.equal(/\blater\b/.test(words), promises.removal === 'later', 'later')
      assert.equal(/\bcannot delete\b/.test(words), promises.removal === 'by hand', 'by hand')
    })

    test('does not promise more than the program', () => {
      const words = said('Cannot promise')
      assert.equal(/best effort/.test(words), promises.newness === 'best effort', 'newness')
      assert.equal(/of the account|in the account/.test(words), promises.scope === 'account', 'scope')
      assert.equal(/is the list/.test(words), promises.scope === 'list', 'scope')
      assert.equal(/counts as ours, whoever/.test(words), !promises.recognisesOwn, 'own contacts')
      for (const [repeatable, [, phrase]] of repetitions) {
        if (phrase !== null) assert.equal(phrase.test(words), repeatable === promises.repeatable, String(phrase))
      }
    })

    test('names limits that the program keeps', () => {
      const words = said('Limits')
      const limit = /([\d,]+) calls (a second|a minute|in 10 seconds)(?: and (\d+) (a second|a minute))?/.exec(words)
      const [, ...parts] = limit ?? []
      for (const [calls, span] of [parts.slice(0, 2), parts.slice(2)]) {
        if (calls === undefined) continue
        const perMillisecond = Number(calls.replaceAll(',', '')) / spans[span as keyof typeof spans]
        assert.ok(rate.calls / rate.per <= perMillisecond, `${calls} ${span}`)
      }
      const [, connections] = /(\d+) calls at once/.exec(words) ?? []
      if (connections !== undefined) assert.ok(rate.connections <= Number(connections))
      const isYours = name === 'listmonk' || name === 'ghost'
      assert.equal(limit === null && connections === undefined, isYours, 'only a server of yours has none')
    })
  })
}

test('there is a part for every provider, in the order of the table, and for nothing else', () => {
  const titles = vendorNames.map(name => vendors[name].title)
  const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading!)
  assert.deepEqual(headings.slice(4, -3), titles)
})

test('for every setting of every provider it says what it was tried against, and when', () => {
  const rows = rowsOf(under('Verified how')).map(row => row.split(' | '))
  for (const name of vendorNames) {
    const { title, settings } = vendors[name]
    const own = rows.filter(([provider]) => provider === title)
    const said = own.flatMap(([, names = '']) => [...names.matchAll(/`(\w+)`/g)].map(([, setting]) => setting!))
    const named = Object.keys(settings).filter(setting => !setting.endsWith('BASE_URL'))
    assert.deepEqual(said.sort(), named.sort(), title)
    for (const [, , against = '', when = ''] of own) {
      assert.ok(against.length > 20, title)
      assert.match(when, /^\d{4}-\d\d-\d\d$/)
    }
  }
  assert.ok(rows.every(([provider]) => vendorNames.some(name => vendors[name].title === provider)))
})

test('what a visitor is told is what the program says', () => {
  const rows = rowsOf(under('How a signup goes'))
  for (const { status, error } of [addressRefused('…'), providerUnreachable, savedForLater]) {
    assert.ok(
      rows.some(row => row.includes(`${status} \`${error}\``)),
      error,
    )
  }
})

test('the times are those in force', () => {
  const listed = /tried again after (.*?), each wait longer or shorter by up to 20 %/.exec(flat)?.[1] ?? ''
  const unit: Record<string, number> = { s: 1_000, min: MINUTE, h: 60 * MINUTE }
  const delays = [...listed.matchAll(/(\d+) (s|min|h)\b/g)].map(([, count, name]) => Number(count) * unit[name!]!)
  assert.equal(delays.length, 10)
  for (const [i, delay] of [...delays, delays.at(-1)!, delays.at(-1)!].entries()) {
    const [least, middle, most] = [0, 0.5, 1].map(random => untilNext(handOverSchedule, i + 1, random))
    assert.deepEqual([least, middle, most], [delay * 0.8, delay, delay * 1.2])
  }
  assert.ok(flat.includes(`${Number.parseInt(ownSettings.PROVIDER_TIMEOUT.default, 10)} seconds unless you set it`))
})

test('the example of settings is accepted', async () => {
  for (const block of blocks('ini')) {
    const result = await readConfig({ BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1', ...parseEnv(block) })
    assert.ok('config' in result, JSON.stringify(result))
    assert.deepEqual(result.config.warnings, [])
  }
})

test('the commands work as they stand there', { timeout: 120_000 }, async t => {
  const folder = temporaryFolder(t)
  for (const each of ['package.json', 'bin', 'src', 'node_modules']) symlinkSync(join(root, each), join(folder, each))
  const { url } = await startReceiver(t, loopsFake().answer)
  const type = (command: string, env: Record<string, string>) =>
    promisify(execFile)('sh', ['-c', command], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: process.env.HOME, PROVIDER: 'loops', ...loopsSettings(url), ...env },
    }).catch(error => error as { code: number; stdout: string; stderr: string })

  const commands = blocks('sh').map(block => block.trim())
  const [check, save] = commands
  assert.equal(commands.length, 2)
  const { stdout } = await type(check!, {})
  assert.equal(stdout, blocks('text')[0])
  const wrong = await type(check!, { LOOPS_API_KEY: 'another-key' })
  assert.ok('code' in wrong && wrong.code === 1 && /^wrong {3}provider loops: /m.test(wrong.stdout), wrong.stdout)

  const path = join(folder, 'waitlist.db')
  const store = await sqliteStore({ path, eventName: 'waitlist.joined', provider: 'loops', destinations: [] })
  await store.admit(signup('Ada', 'ada@example.com'))
  await store.close()
  await type(save!, { DATABASE_URL: `sqlite:${path}` })
  assert.match(readFileSync(join(folder, 'contacts.csv'), 'utf8'), /ada@example\.com.*pending/)
})
