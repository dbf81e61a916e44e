import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { misnamed } from '../../src/config/environment.ts'
import { allVendors, settings } from '../../src/config/settings.ts'

const own = Object.keys(settings)
const vendors = await allVendors()
const known = [...own, ...Object.values(vendors).flatMap(vendor => Object.keys(vendor.settings))]

const inEnvironment = (variables: Readonly<Record<string, string>>, useful = own) =>
  misnamed({ inFile: [], inEnvironment: variables, known, useful })
const inFile = (...names: string[]) => misnamed({ inFile: names, inEnvironment: {}, known, useful: own })

/** Names that shells, jobs, clouds and web projects set, of which each is near a setting. */
const usual =
  'API_BASE_URL API_URL APP_URL DATABASE_USER ENV HOME HOSTNAME LOG_DIR LOG_FILE LOG_PATH MAIL MAILFROM MAILPATH MAILTO ' +
  'PORTS POST REDISPORT REDIS_PORT SERVER_NAME SMTP_FROM SMTP_PORT SMTP_USER SSL_CERT_FILE VITE_BASE_URL WAITLIST_PORT WEBHOOK_ID'

describe('names that are nearly those of settings', () => {
  test('nothing is said of what others set, whatever the provider', () => {
    const variables = Object.fromEntries(usual.split(' ').map(name => [name, 'x']))
    for (const name of Object.keys(variables)) assert.ok(!known.includes(name), `${name} is a setting`)
    assert.deepEqual(inEnvironment(variables, known), [])
  })

  const slips: readonly (readonly [name: string, meant: string])[] = [
    ['CORS_ORIGIN', 'CORS_ORIGINS'],
    ['RATE_LIMT', 'RATE_LIMIT'],
    ['RATE_LIMIT_WINDWO', 'RATE_LIMIT_WINDOW'],
    ['TRUST_PORXY', 'TRUST_PROXY'],
    ['BASEURL', 'BASE_URL'],
    ['base_url', 'BASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['WEBHOOK_SECRETS', 'WEBHOOK_SECRET'],
    ['SLACK_WEBHOOK_URI', 'SLACK_WEBHOOK_URL'],
    ['SMTPURL', 'SMTP_URL'],
    ['MAIL_FORM', 'MAIL_FROM'],
    ['LOGLEVEL', 'LOG_LEVEL'],
  ]
  test('a slip is told, with what was meant, in the environment as in the file', () => {
    for (const [name, meant] of slips) {
      assert.deepEqual(inEnvironment({ [name]: 'x' }), [`${name} is not a setting of Waitlist; did you mean ${meant}?`])
      assert.deepEqual(inFile(name), [`.env has ${name}, which is not a setting of Waitlist; did you mean ${meant}?`])
    }
  })

  test("a provider's setting is told where the provider is chosen", () => {
    const ofLoops = Object.keys(vendors.loops.settings)
    const told = ['LOOP_API_KEY is not a setting of Waitlist; did you mean LOOPS_API_KEY?']
    assert.deepEqual(inEnvironment({ LOOP_API_KEY: 'x' }, [...own, ...ofLoops]), told)
    assert.deepEqual(inEnvironment({ LOOP_API_KEY: 'x' }), [])
  })

  test('what begins like the settings of the chosen provider is left to the sentence of that provider', () => {
    const names = { inFile: ['LOOPS_API_KYE'], inEnvironment: { LOOPS_API_KY: 'x' }, known, useful: known }
    assert.equal(misnamed(names).length, 2)
    assert.deepEqual(misnamed({ ...names, prefix: 'LOOPS_' }), [])
  })

  test('nothing is said where the right one is set too, of an empty one, and of what a neighbour sets', () => {
    assert.deepEqual(inEnvironment({ DATABASE_URI: 'x', DATABASE_URL: 'y' }), [])
    const both = { inFile: ['DATABASE_URL'], inEnvironment: { DATABASE_URI: 'x' }, known, useful: own }
    assert.deepEqual(misnamed(both), [])
    assert.deepEqual(inEnvironment({ CORS_ORIGIN: '' }), [])
    assert.deepEqual(inEnvironment({ ADMINPORT: 'tcp://10.0.0.7:80' }), [])
  })

  test('of a name in the file that is near none only that it is none', () => {
    assert.deepEqual(inFile('SMTP_PASSWORD', 'HOSTS', 'SSL_CERT_FILE'), [
      '.env has SMTP_PASSWORD, which is not a setting of Waitlist',
      '.env has HOSTS, which is not a setting of Waitlist; did you mean HOST?',
      '.env has SSL_CERT_FILE, which is not a setting of Waitlist; did you mean TLS_CERT_FILE?',
    ])
  })
})
