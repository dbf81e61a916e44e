import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { readConfig } from '../../src/config/config.ts'
import { assignments } from '../../src/config/kinds.ts'
import { allVendors, vendorNames } from '../../src/providers/list.ts'

const vendors = await allVendors()

const https = { BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1' }

/** A value that each rule allows. */
function allowed(name: string): string {
  if (name === 'MAILCHIMP_API_KEY') return 'key-us21'
  // Not the one that starts the automation.
  if (name.endsWith('_IDS')) return '8'
  const texts = ['7', 'true', 'https://api.example.com', 'pub_7', `${'0'.repeat(24)}:${'0'.repeat(64)}`]
  const vendor = vendorNames.find(each => Object.hasOwn(vendors[each].settings, name))!
  const { read } = vendors[vendor].settings[name]!
  return texts.find(text => read(text) !== undefined)!
}

describe('the settings of the providers', () => {
  for (const name of vendorNames) {
    const { settings } = vendors[name]
    const needed = Object.keys(settings).filter(setting => settings[setting]!.required)

    test(`${name}: what is missing is named, with where to find it`, async () => {
      const result = await readConfig({ PROVIDER: name })
      assert.ok('mistakes' in result)
      assert.deepEqual(result.mistakes.map(mistake => mistake.split(' ')[0]).sort(), [...needed].sort())
      for (const mistake of result.mistakes) {
        const { where, meaning } = settings[mistake.split(' ')[0]!]!
        assert.ok(where && mistake.includes(where) && mistake.includes(meaning), mistake)
      }
    })

    test(`${name}: all of its settings are read, alone and together`, async () => {
      const least = Object.fromEntries(needed.map(setting => [setting, allowed(setting)]))
      const all = Object.fromEntries(Object.keys(settings).map(setting => [setting, allowed(setting)]))
      for (const values of [least, all]) {
        const result = await readConfig({ ...https, PROVIDER: name, ...values })
        assert.ok('config' in result, JSON.stringify(result))
        assert.equal(result.config.provider?.name, name)
        assert.deepEqual(result.config.warnings, [])
        const given = Object.keys(result.config.provider.settings)
        const expected = Object.keys(settings).filter(each => each in values || settings[each]!.default !== undefined)
        assert.deepEqual(given, expected)
      }
    })

    test(`${name}: a wrong value is refused, with what is allowed, and is not repeated`, async () => {
      for (const [setting, { read, allowed: rule }] of Object.entries(settings)) {
        const wrong = ['se Cret', 'seCret', 'ftp://seCret'].find(text => read(text) === undefined)
        if (wrong === undefined) continue
        const values = Object.fromEntries(needed.map(each => [each, allowed(each)]))
        const result = await readConfig({ PROVIDER: name, ...values, [setting]: wrong })
        assert.ok('mistakes' in result, setting)
        assert.equal(result.mistakes.length, 1)
        assert.ok(result.mistakes[0]!.startsWith(`${setting} ${rule}`), result.mistakes.join())
        assert.doesNotMatch(result.mistakes[0]!, /se.?Cret/)
      }
    })

    test(`${name}: every setting begins with its name, every default is allowed`, () => {
      for (const [setting, { read, default: standard }] of Object.entries(settings)) {
        assert.match(setting, new RegExp(`^${name.toUpperCase()}_`))
        if (standard !== undefined) assert.notEqual(read(standard), undefined, setting)
      }
    })
  }

  test('a key that travels in the clear is warned of', async () => {
    const loops = { ...https, PROVIDER: 'loops', LOOPS_API_KEY: 'key' }
    const warnings = async (env: Record<string, string>) => {
      const result = await readConfig(env)
      assert.ok('config' in result)
      return result.config.warnings
    }
    assert.deepEqual(await warnings(loops), [])
    assert.match(
      (await warnings({ ...loops, LOOPS_BASE_URL: 'http://loops.example' })).join(),
      /plain HTTP to a public address/,
    )
    assert.deepEqual(await warnings({ ...loops, LOOPS_BASE_URL: 'http://10.0.0.7:8080' }), [])
  })

  test('fields of their own are taken with the providers that have such, and refused with others', async () => {
    for (const name of vendorNames) {
      const { settings, title, takesFields } = vendors[name]
      const needed = Object.keys(settings).filter(setting => settings[setting]!.required)
      const values = Object.fromEntries(needed.map(setting => [setting, allowed(setting)]))
      const result = await readConfig({ ...https, PROVIDER: name, ...values, PROVIDER_FIELDS: 'plan=early' })
      if (takesFields) assert.ok('config' in result, JSON.stringify(result))
      else
        assert.match(String('mistakes' in result && result.mistakes), new RegExp(`^PROVIDER_FIELDS .*with ${title},`))
    }
  })

  test('several values by name are read, each name once', () => {
    const { read } = assignments
    const values = { plan: 'early', planName: 'a = b', 'Größe 1': 'L' }
    assert.deepEqual(read('plan=early, planName=a = b,Größe 1=L'), values)
    for (const text of [
      'plan',
      'plan=',
      '=early',
      'plan=a,plan=b',
      'plan=a,',
      'pl\tan=a',
      `${'n'.repeat(101)}=a`,
      '__proto__=a',
      'plan =a',
    ]) {
      assert.equal(read(text), undefined, text)
    }
    assert.equal(read(Array.from({ length: 21 }, (_, i) => `p${i}=x`).join()), undefined)
  })
})
