import assert from 'node:assert/strict'
import { after, describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { redisLimiter } from '../../src/limiters/redis.ts'
import { readRedisUrl } from '../../src/limiters/redis-url.ts'
import type { Allowance } from '../../src/waitlist/ports.ts'
import { limiterContract } from '../contracts/limiter.ts'
import { freePort } from '../harness/port.ts'
import { until } from '../harness/program.ts'
import { noRedis, redisProgram, startRedis, startRedisCluster, startSentinel } from '../harness/redis.ts'
import { fixture } from '../harness/tls.ts'
import { answers, connectedLimiter, failsWith, type Opened, openedLimiter } from './connected.ts'

const skip = redisProgram === undefined ? noRedis : false
const quota = { limit: 3, window: 600 }
const client = '192.0.2.1'
/** As in docs/instances.md. */
const rights = 'on >s3cret ~waitlist:limit:* -@all +evalsha +eval +time +get +set'.split(' ')
const clusterRights = [...rights, '+cluster|slots', '+cluster|info', '+info']

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

describe('a cluster', { skip, timeout: 90_000 }, async () => {
  if (skip !== false) return
  const cluster = await startRedisCluster()
  after(() => cluster.remove())
  const url = `redis+cluster://${cluster.nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`
  let contracts = 0

  /** Connected to all nodes. */
  async function connectedCluster(t: TestContext, options: Opened) {
    const limiter = await connectedLimiter(t, options)
    const all = Array.from({ length: 30 }, (_, i) => `somebody else ${i}`)
    await until(async () =>
      (await Promise.allSettled(all.map(client => limiter.take(client)))).every(({ status }) => status === 'fulfilled'),
    )
    return limiter
  }

  limiterContract('a cluster', async (t, quota) => {
    const limiter = await connectedCluster(t, { ...quota, url })
    // It has one database, so each test has names of its own.
    const prefix = `${contracts++} `
    return { ...limiter, take: (client, network) => limiter.take(prefix + client, network && prefix + network) }
  })

  test('one of its nodes is enough to find the others, and all of them count', async t => {
    const limiter = await connectedCluster(t, { ...quota, url: url.split(',')[0]! })
    for (let i = 0; i < 100; i++) assert.equal((await limiter.take(`one ${i}`)).remaining, 2)
    for (const node of cluster.nodes) assert.ok(Number(await node.command('dbsize')) > 10)
  })

  test('a user with no more rights than needed counts', async t => {
    for (const node of cluster.nodes) await node.command('acl', 'setuser', 'waitlist', ...clusterRights)
    const limiter = await connectedCluster(t, { ...quota, url: url.replace('//', '//waitlist:s3cret@') })
    for (let i = 0; i < 20; i++) assert.equal((await limiter.take(`user ${i}`)).remaining, 2)
    await fails(t, url.replace('//', '//waitlist:wr0ng@'), /WRONGPASS/)
  })

  test('of a crowd on several instances exactly the quota is admitted', async t => {
    const some = await Promise.all(Array.from({ length: 3 }, () => connectedCluster(t, { ...quota, url })))
    const attempts = await Promise.all(Array.from({ length: 300 }, (_, i) => some[i % 3]!.take('crowd')))
    assert.equal(attempts.filter(({ admitted }) => admitted).length, 3)
  })

  test('a slot that moves to another node is followed, and its count moves along', async t => {
    const limiter = await connectedCluster(t, { ...quota, url })
    await limiter.take('moving')
    const [key, zero] = ['waitlist:limit:moving', cluster.nodes[0]!]
    const slot = Number(await zero.command('cluster', 'keyslot', key))
    const from = Math.min(2, Math.floor(slot / (16_384 / 3)))
    const [source, target] = [cluster.nodes[from]!, cluster.nodes[(from + 1) % 3]!]
    const [sourceId, targetId] = [await source.command('cluster', 'myid'), await target.command('cluster', 'myid')]
    await target.command('cluster', 'setslot', slot, 'importing', String(sourceId))
    await source.command('cluster', 'setslot', slot, 'migrating', String(targetId))
    assert.equal((await limiter.take('moving')).remaining, 1)
    await source.command('migrate', '127.0.0.1', target.port, key, 0, 5_000)
    // Here the source answers ASK, then MOVED.
    assert.equal((await limiter.take('moving')).remaining, 0)
    for (const node of [target, source]) await node.command('cluster', 'setslot', slot, 'node', String(targetId))
    assert.equal((await limiter.take('moving')).admitted, false)
  })

  test('an attempt that a hanging node has not answered is not sent again', async t => {
    const limiter = await connectedCluster(t, { ...quota, url, timeout: 1_000 })
    const slot = Number(await cluster.nodes[0]!.command('cluster', 'keyslot', 'waitlist:limit:hanging'))
    const node = cluster.nodes[Math.floor(slot / (16_384 / 3))]!
    node.pause()
    await assert.rejects(limiter.take('hanging'))
    // By now the connection is given up, and what was sent would be sent again.
    await wait(500)
    node.goOn()
    let again: Allowance | undefined
    await until(async () => {
      again = await limiter.take('hanging').catch(() => undefined)
      return again !== undefined
    })
    assert.equal(again?.remaining, 1)
  })

  test('all of it stopped and started again is used again', async t => {
    const limiter = await connectedCluster(t, { ...quota, url })
    await Promise.all(cluster.nodes.map(node => node.stop()))
    await until(async () => !(await answers(limiter)))
    await assert.rejects(limiter.take(client), /ECONNREFUSED|closed/)
    await Promise.all(cluster.nodes.map(node => node.start()))
    await until(() => answers(limiter))
  })
})

describe('servers under a sentinel', { skip, timeout: 90_000 }, async () => {
  if (skip !== false) return
  const master = await startRedis(['--repl-diskless-sync-delay', '0'])
  const replica = await startRedis(['--replicaof', '127.0.0.1', String(master.port)])
  await until(async () => String(await master.command('info', 'replication')).includes('state=online'))
  const sentinel = await startSentinel(master)
  after(() => Promise.all([master, replica, sentinel].map(each => each.remove())))
  await until(async () => ((await sentinel.command('sentinel', 'replicas', 'main')) as unknown[]).length === 1)

  test('the master counts; when it is lost its replica does, with what it knows', async t => {
    for (const server of [master, replica]) await server.command('acl', 'setuser', 'waitlist', ...rights)
    const sentinelUser = ['on', '>gu4rd', '-@all', '+sentinel|get-master-addr-by-name', '+sentinel|sentinels']
    await sentinel.command('acl', 'setuser', 'looker', ...sentinelUser)
    const users = ['waitlist:s3cret', 'sentinel-user=looker&sentinel-pass=gu4rd']
    const url = `redis+sentinel://${users[0]}@127.0.0.1:${sentinel.port}/main?${users[1]}`
    const limiter = await connectedLimiter(t, { ...quota, url })
    assert.equal((await limiter.take(client)).remaining, 2)
    assert.equal(Number(await master.command('exists', `waitlist:limit:${client}`)), 1)
    await until(async () => Number(await replica.command('exists', `waitlist:limit:${client}`)) === 1)
    await sentinel.command('sentinel', 'set', 'main', 'down-after-milliseconds', 500)
    await master.stop()
    await until(() => answers(limiter))
    assert.match(String(await replica.command('info', 'replication')), /role:master/)
    assert.equal((await limiter.take(client)).remaining, 1)
  })

  test('a name that the sentinel does not know is the reason', async t => {
    await fails(t, `redis+sentinel://127.0.0.1:${sentinel.port}/other`, /No such master/)
  })
})
