import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseEnv, promisify } from 'node:util'
import PostalMime from 'postal-mime'
import { Webhook } from 'standardwebhooks'
import { readConfig } from '../../src/config/config.ts'
import { mail } from '../../src/destinations/mail.ts'
import { isSecret } from '../../src/destinations/secret.ts'
import { webhook } from '../../src/destinations/webhook.ts'
import { eventSchedule, untilNext } from '../../src/waitlist/delivery/retry.ts'
import { eventId } from '../../src/waitlist/rules/contact.ts'
import { joined } from '../contracts/destination.ts'
import { checkout } from '../harness/checkout.ts'
import { startMailServer } from '../harness/mail-server.ts'
import { runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const text = readFileSync(join(root, 'docs', 'events.md'), 'utf8')
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block]) => block!.trim())
const commands = blocks('sh').flatMap(block => block.split('\n'))

const { WEBHOOK_URL = '', WEBHOOK_SECRET = '' } = parseEnv(blocks('ini')[0]!)
const { SMTP_URL = '', MAIL_FROM = '', SERVICE_NAME = '' } = parseEnv(blocks('ini')[1]!)

/** Types a command in a shell; rejects when it fails. */
const type = (command: string, cwd: string, env: Record<string, string> = {}) =>
  promisify(execFile)('sh', ['-c', command], { cwd, env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env } })

test('the request in docs/events.md is what is sent, byte for byte, with a signature that verifies', async t => {
  const [head, body] = blocks('http')[0]!.split('\n\n') as [string, string]
  const [first, ...fields] = head.split('\n')
  const shown = Object.fromEntries(fields.map(field => field.toLowerCase().split(': ', 2) as [string, string]))
  const raw = Object.fromEntries(fields.map(field => field.split(': ', 2) as [string, string]))

  const { url, received } = await startReceiver(t, () => ({ status: 204 }))
  const destination = webhook({ url: url + new URL(WEBHOOK_URL).pathname, secrets: [WEBHOOK_SECRET] })
  t.after(destination.close)
  const { type: name, timestamp, data } = JSON.parse(body)
  const contact = { ...data, state: 'listed' as const, createdAt: new Date(data.createdAt) }
  const now = Number(shown['webhook-timestamp']) * 1000
  t.mock.timers.enable({ apis: ['Date'], now })
  const event = { kind: 'joined', id: eventId(contact, 'joined'), name, at: new Date(timestamp), contact } as const
  await destination.deliver(event, AbortSignal.timeout(10_000))

  const [sent] = received
  assert.equal(first, `${sent!.method} ${sent!.path} HTTP/1.1`)
  assert.equal(sent!.text, body)
  for (const field of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
    assert.equal(sent!.headers[field], raw[field])
  }
  assert.equal(sent!.headers['content-type'], shown['content-type'])
  assert.equal(shown.host, new URL(WEBHOOK_URL).host)
  assert.deepEqual(new Webhook(WEBHOOK_SECRET).verify(body, raw), JSON.parse(body))
})

test('the settings in docs/events.md are accepted, and what it says of private addresses is so', async () => {
  const warningsOf = async (url: string) => {
    const result = await readConfig({ ...safe, WEBHOOK_URL: url, WEBHOOK_SECRET })
    assert.ok('config' in result, JSON.stringify(result))
    assert.deepEqual(result.config.webhook, { url, secrets: [WEBHOOK_SECRET] })
    assert.equal(result.config.eventName, JSON.parse(blocks('http')[0]!.split('\n\n')[1]!).type)
    return result.config.warnings.length
  }
  const safe = { BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1' }
  const named = [...text.matchAll(/`(http:[^`]+)`/g)].map(([, url]) => url!)
  assert.equal(named.length, 2)
  for (const url of [WEBHOOK_URL, ...named]) assert.equal(await warningsOf(url), 0, url)
  assert.equal(await warningsOf(WEBHOOK_URL.replace('https', 'http')), 1)
})

test('the schedule in docs/events.md is the one in force', () => {
  const flat = text.replaceAll(/\s+/g, ' ')
  const listed = /at once, then after (.*?), each wait longer or shorter by up to 20 %/.exec(flat)?.[1] ?? ''
  const unit: Record<string, number> = { s: 1_000, min: 60_000, h: 3_600_000 }
  const delays = [...listed.matchAll(/(\d+) (s|min|h)\b/g)].map(([, count, name]) => Number(count) * unit[name!]!)
  const inForce: number[] = []
  for (let attempts = 1; ; attempts++) {
    const [least, middle, most] = [0, 0.5, 1].map(random => untilNext(eventSchedule, attempts, random))
    if (middle == null) break
    assert.deepEqual([least, most], [middle * 0.8, middle * 1.2])
    inForce.push(middle)
  }
  assert.deepEqual(delays, inForce)
  assert.equal(inForce.length, 9, 'up to ten times')
  assert.equal(Math.floor(inForce.reduce((a, b) => a + b) / 3_600_000), 75)
  const minutes = Number(/in the end every (\d+) minutes/.exec(flat)?.[1])
  const source = readFileSync(join(root, 'src', 'waitlist', 'delivery', 'events.ts'), 'utf8')
  assert.ok(source.includes(`const LONGEST_PAUSE = ${minutes * 60}_000\n`), 'an outage')
})

test('the welcome mail in docs/events.md is the one that is sent, by the settings there', async t => {
  const safe = { BASE_URL: 'https://waitlist.example.com', TRUST_PROXY: '1' }
  const result = await readConfig({ ...safe, SMTP_URL, MAIL_FROM, SERVICE_NAME })
  assert.ok('config' in result && result.config.mail !== null, JSON.stringify(result))
  const { warnings, mail: settings } = result.config
  assert.deepEqual(warnings, [])
  const login = { user: 'hello@example.com', password: 'secret' }
  assert.deepEqual(settings.server, { host: 'smtp.example.com', port: 465, secure: true, login })
  const { host, port, mails } = await startMailServer(t)
  const server = { host, port, secure: false, login: null }
  const destination = mail({ ...settings, server, service: '{service}' })
  t.after(destination.close)
  await destination.deliver(joined(0, { name: '{name}' }), AbortSignal.timeout(10_000))
  const sent = await PostalMime.parse(mails[0]!.source)
  const shown = /^ {2}```text\n(.*?)^ {2}```$/ms.exec(text)![1]!.replaceAll(/^ {2}/gm, '')
  assert.equal(sent.text?.trimEnd(), shown.trimEnd())
  assert.deepEqual([sent.from?.name, sent.from?.address], ['Example', 'hello@example.com'])
  assert.ok(text.includes(`at most \`MAIL_RATE\` mails a minute (${settings.rate})`))
  assert.deepEqual([destination.concurrency, destination.timeout], [3, 20_000], 'three at most; ten and ten seconds')
})

test('the commands in docs/events.md work as they stand there', {
  timeout: 120_000,
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const folder = checkout(t)
  const [makeSecret, ...others] = commands
  const secret = (await type(makeSecret!, folder)).stdout.trim()
  assert.ok(isSecret(secret), secret)

  // A receiver that refuses each event, so that there is something to replay.
  const { url, received } = await startReceiver(t, ({ json }) => ({
    status: json.type === 'waitlist.check' ? 204 : 422,
  }))
  const { host, port, mails } = await startMailServer(t)
  const mail = { SMTP_URL: `smtp://${host}:${port}`, MAIL_FROM, SERVICE_NAME }
  const env = { WEBHOOK_URL: url, WEBHOOK_SECRET: secret, ...mail, PORT: '0', SHUTDOWN_DELAY: '0' }
  const program = await runProgram(t, env, { cwd: folder })
  for (const name of ['ada', 'grace']) {
    const body = JSON.stringify({ name, email: `${name}@example.com` })
    const headers = { 'content-type': 'application/json' }
    assert.equal((await fetch(`${program.baseUrl}/api/waitlist`, { method: 'POST', headers, body })).status, 200)
  }
  await until(() => program.stdout().split('a delivery was abandoned').length === 3)
  assert.equal(await program.end('SIGTERM'), 0)
  for (const one of received) new Webhook(secret).verify(one.text, { ...one.headers })

  for (const [i, command] of others.entries()) {
    // Each on a copy, since nothing is left to replay after the first.
    const copy = checkout(t, String(i))
    cpSync(join(folder, 'data'), join(copy, 'data'), { recursive: true })
    const { stdout } = await type(command, copy, env)
    assert.notEqual(stdout, '', command)
    if (command.includes('show')) assert.match(stdout, /422/)
    if (command.includes('--mail')) assert.deepEqual(mails.at(-1)!.to, ['you@example.com'])
    if (command.includes('replay')) {
      assert.match((await type('npm run -s waitlist deliveries', copy)).stdout, /waiting/, command)
    }
  }
})
