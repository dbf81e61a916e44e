import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { parseEnv } from 'node:util'
import { readConfig } from '../src/config/config.ts'
import { redisPace } from '../src/limiters/redis.ts'
import { readRedisUrl } from '../src/limiters/redis-url.ts'
import { postgresStore } from '../src/stores/postgres/store.ts'
import { signup } from './contracts/store.place.ts'
import { temporaryFolder } from './harness/folder.ts'
import { noHaproxy } from './harness/haproxy.ts'
import { freePort } from './harness/port.ts'
import { startPostgres, unsynced } from './harness/postgres.ts'
import { until } from './harness/program.ts'
import { noRedis, redisProgram, startRedis } from './harness/redis.ts'
import { recordingLog, startService } from './harness/service.ts'
import { connectedLimiter } from './limiters/connected.ts'

const root = new URL('../', import.meta.url)
const text = readFileSync(new URL('docs/instances.md', root), 'utf8')
const blocks = (language: string) =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, block]) => block!.trim())

test('the example of settings is accepted', async () => {
  for (const block of blocks('ini')) {
    const result = await readConfig(parseEnv(block) as Record<string, string>)
    assert.ok('config' in result, JSON.stringify(result))
    assert.deepEqual(result.config.warnings, [])
  }
})

test('every address of Redis that the table shows is one', () => {
  const addresses = [...text.matchAll(/^\| `(redis\S+)` \|/gm)].map(([, address]) => address!.replace('…', 'host'))
  assert.equal(addresses.length, 2)
  for (const address of addresses) assert.ok(readRedisUrl(address), address)
})

test('the user of Redis has all the rights that are needed', {
  skip: redisProgram === undefined && noRedis,
  timeout: 60_000,
}, async t => {
  const server = await startRedis()
  t.after(() => server.remove())
  const [name, ...values] = blocks('redis')[0]!.split(' ')
  await server.command(name!, ...values)
  const url = `redis://waitlist:secret@127.0.0.1:${server.port}`
  const limiter = await connectedLimiter(t, { url, limit: 1, window: 60 })
  assert.equal((await limiter.take('192.0.2.1')).admitted, true)

  const pace = redisPace(readRedisUrl(url)!, 20_000)
  t.after(() => pace.close())
  // As after the server's clock was set back, so that every command of the script is used. Without a right every turn is now.
  await server.command('rpush', 'waitlist:pace:vendor', '9'.repeat(17))
  await until(async () => (await pace.take('vendor', 1, 60_000, 60_000)) !== 0)
})

describe('the statements for PostgreSQL', { timeout: 60_000 }, async () => {
  const server = await startPostgres({ settings: unsynced })
  after(() => server.remove())
  const at = (user: string, database: string) => `postgres://${user}:secret@127.0.0.1:${server.port}/${database}`
  const open = (url: string) => postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })

  test('make a role and a database, and another role that runs the service without owning anything', async () => {
    const [owner, service] = blocks('sql').map(block => block.split(';').filter(each => each.trim() !== ''))
    await server.run(await server.database(), ...owner!)
    const first = await open(at('waitlist', 'waitlist'))
    assert.equal((await first.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    await first.close()

    const [create, ...grants] = service!
    await server.run(`postgres://owner@127.0.0.1:${server.port}/waitlist`, create!)
    await server.run(at('waitlist', 'waitlist'), ...grants)
    const second = await open(at('waitlist_service', 'waitlist'))
    assert.equal((await second.admit(signup('Ada', 'ada@example.com'))).is, 'already listed')
    assert.equal((await second.admit(signup('Eve', 'eve@example.com'))).is, 'listed now')
    await second.close()
  })

  test('set the timeouts that PgBouncer does not pass on', async () => {
    const alter = [...text.matchAll(/`(alter role waitlist set [^`]+)`/g)].map(([, statement]) => statement!)
    assert.equal(alter.length, 2)
    await server.run(await server.database(), ...alter)
  })
})

test('HAProxy takes its configuration, and sends visitors to who is healthy', {
  skip: noHaproxy ?? false,
  timeout: 60_000,
}, async t => {
  const service = await startService(t, { TRUST_PROXY: '1' })
  const port = await freePort()
  const file = join(temporaryFolder(t), 'haproxy.cfg')
  const [here, nowhere] = [new URL(service.baseUrl).port, await freePort()]
  const written = blocks('haproxy')[0]!
    .replace(/bind .*/, `bind 127.0.0.1:${port}`)
    .replace('10.0.0.1:8080', `127.0.0.1:${here}`)
    .replaceAll(/10\.0\.0\.\d:8080/g, `127.0.0.1:${nowhere}`)
  writeFileSync(file, `${written}\n`)
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', chunk => {
    said += chunk
  })
  const ended = once(child, 'close')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  const ask = () =>
    fetch(`http://127.0.0.1:${port}/api/health`).then(
      ({ status }) => status,
      () => 0,
    )
  await until(async () => {
    assert.equal(child.exitCode, null, said)
    return (await ask()) === 200
  })
  for (let i = 0; i < 10; i++) assert.equal(await ask(), 200)
})
