import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { vendorNames, vendorOf } from '../../src/providers/list.ts'
import { providerFields } from '../../src/providers/vendor.ts'
import { mistakesIn } from '../harness/service.ts'

describe('the settings of the providers', async () => {
  for (const name of vendorNames) {
    const { settings, title, takesFields } = await vendorOf(name)

    test(`${name}: what is missing is named, with where to find it`, async () => {
      const needed = Object.entries(settings).filter(([, { required }]) => required)
      const mistakes = await mistakesIn({ PROVIDER: name })
      assert.deepEqual(
        mistakes,
        needed.map(
          ([setting, { meaning, where }]) =>
            `${setting} is missing: PROVIDER=${name} needs it. ${meaning} Where to find it: ${where}`,
        ),
      )
    })

    test(`${name}: every setting begins with its name, every default is allowed, a wrong value is not repeated`, async () => {
      for (const [setting, { read, default: standard }] of Object.entries(settings)) {
        assert.match(setting, new RegExp(`^${name.toUpperCase()}_`))
        if (standard !== undefined) assert.notEqual(read(standard), undefined, setting)
        const wrong = ['se Cret', 'seCret', 'ftp://seCret'].find(text => read(text) === undefined)
        if (wrong !== undefined) {
          assert.doesNotMatch((await mistakesIn({ PROVIDER: name, [setting]: wrong })).join(), /se.?Cret/)
        }
      }
    })

    test(`${name}: fields are taken or refused`, async () => {
      const mistakes = await mistakesIn({ PROVIDER: name, PROVIDER_FIELDS: 'plan=early' })
      assert.equal(mistakes.join().includes(`PROVIDER_FIELDS cannot be used with ${title}`), !takesFields)
    })
  }

  test('a Mailchimp key without its data centre is refused', async () => {
    const mistakes = await mistakesIn({ PROVIDER: 'mailchimp', MAILCHIMP_API_KEY: 'key', MAILCHIMP_AUDIENCE_ID: 'a' })
    assert.match(mistakes.join(), /^MAILCHIMP_API_KEY must end with its data centre/)
  })

  test('several values by name are read, each name once', () => {
    const values = { plan: 'early', planName: 'a = b', 'Größe 1': 'L' }
    assert.deepEqual(providerFields.read('plan=early, planName=a = b,Größe 1=L'), values)
    for (const text of ['plan', 'plan=', '=early', 'plan=a,plan=b', 'plan=a,', 'pl\tan=a', '__proto__=a', 'plan =a']) {
      assert.equal(providerFields.read(text), undefined, text)
    }
  })
})
