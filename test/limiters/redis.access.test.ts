import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { redisLimiter } from '../../src/limiters/redis.ts'
import { readRedisUrl } from '../../src/limiters/redis-url.ts'
import { freePort } from '../harness/port.ts'
import { until } from '../harness/program.ts'
import { noRedis, redisProgram, startRedis } from '../harness/redis.ts'
import { fixture } from '../harness/tls.ts'
import { answers, connectedLimiter, failsWith, openedLimiter } from './connected.ts'

const skip = redisProgram === undefined ? noRedis : false
const quota = { limit: 3, window: 600 }
const client = '192.0.2.1'
/** As in docs/instances.md. */
const rights = 'on >s3cret ~waitlist:limit:* -@all +evalsha +eval +time +get +set'.split(' ')

/** Resolves when what is at this URL fails for this reason. */
async function fails(t: TestContext, url: string, why: RegExp): Promise<void> {
  const limiter = openedLimiter(t, { ...quota, url })
  await until(() => failsWith(limiter, why))
}

describe('a server with TLS', { skip, timeout: 60_000 }, async () => {
  if (skip !== false) return
  const [first, firstKey, second, secondKey] = ['first.crt', 'first.key', 'second.crt', 'second.key'].map(name =>
    fileURLToPath(fixture(name)),
  )
  const port = await freePort()
  const server = await startRedis([
    '--tls-port',
    String(port),
    '--tls-cert-file',
    first!,
    '--tls-key-file',
    firstKey!,
    '--tls-ca-cert-file',
    second!,
  ])
  after(() => server.remove())
  const files = (names: Record<string, string>) => new URLSearchParams(names).toString()

  test('is used with an authority and a certificate of our own', async t => {
    const url = `rediss://localhost:${port}?${files({ cacert: first!, cert: second!, key: secondKey! })}`
    const limiter = await connectedLimiter(t, { ...quota, url })
    assert.equal((await limiter.take(client)).remaining, 2)
  })

  test('is not used without the authority, nor without the certificate that it asks for', async t => {
    await fails(t, `rediss://localhost:${port}`, /self-signed certificate/)
    await fails(t, `rediss://localhost:${port}?${files({ cacert: first! })}`, /certificate required|closed/)
    await fails(t, `rediss://localhost:${port}?${files({ cacert: second! })}`, /self-signed certificate/)
  })

  test('a file that cannot be read stops the start, and is named', () => {
    const place = readRedisUrl('rediss://localhost?cacert=/nowhere/ca.pem')!
    assert.throws(() => redisLimiter({ location: place, ...quota }), {
      name: 'OperatorError',
      message: /\/nowhere\/ca\.pem/,
    })
  })
})

describe('a user with no more rights than needed', { skip, timeout: 60_000 }, async () => {
  if (skip !== false) return
  const server = await startRedis()
  after(() => server.remove())
  await server.command('acl', 'setuser', 'waitlist', ...rights)
  const at = (user: string, db = '') => `${server.url.replace('//', `//${user}@`)}${db}`

  test('counts, also where the server does not know the script', async t => {
    const limiter = await connectedLimiter(t, { ...quota, url: at('waitlist:s3cret') })
    assert.equal((await limiter.take(client)).remaining, 2)
    await server.command('script', 'flush')
    assert.equal((await limiter.take(client)).remaining, 1)
  })

  test('each of the rights is needed', async t => {
    for (const right of ['evalsha', 'eval', 'time', 'get', 'set']) {
      const user = `without-${right}`
      await server.command('acl', 'setuser', user, ...rights.filter(each => each !== `+${right}`))
      const limiter = openedLimiter(t, { ...quota, url: at(`${user}:s3cret`) })
      await until(() => failsWith(limiter, /NOPERM|no permissions|can't run this command/))
    }
  })

  test('another database needs the right to select it', async t => {
    await server.command('acl', 'setuser', 'elsewhere', ...rights, '+select')
    const limiter = await connectedLimiter(t, { ...quota, url: at('elsewhere:s3cret', '/5') })
    await limiter.take(client)
    assert.match(String(await server.command('info', 'keyspace')), /db5:keys=2/)
  })

  test('a database that the server does not have is the reason, and nothing is counted in another one', async t => {
    const limiter = openedLimiter(t, { ...quota, url: `${server.url}/99` })
    const isRefused = () => failsWith(limiter, /DB index is out of range/)
    await until(async () => (await isRefused()) || answers(limiter))
    await assert.rejects(limiter.take('nowhere'), /DB index is out of range/)
    assert.equal(Number(await server.command('exists', 'waitlist:limit:nowhere')), 0)
  })

  test('a wrong password is the reason, and is not in it', async t => {
    await fails(t, at('waitlist:wr0ng'), /^(?!.*wr0ng).*WRONGPASS/)
  })
})
