/** The server goes away and comes back: nothing that was acknowledged is lost, and the store is not opened anew. */
import assert from 'node:assert/strict'
import { after, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import type { Store } from '../../src/waitlist/ports/signups.ts'
import { StoreUnavailable } from '../../src/waitlist/ports/signups.ts'
import { idOf, signup } from '../contracts/store.place.ts'
import { startPostgres, unsynced } from '../harness/postgres.ts'
import { contactsIn } from '../harness/postgres-contacts.ts'
import { until } from '../harness/program.ts'
import { isSlow } from '../harness/slow.ts'
import { BOUND, openedOn } from './postgres.stage.ts'

const server = await startPostgres({ settings: unsynced })
after(() => server.remove())

const opened = openedOn(server)

/** Signs up one after the other until it is told to stop; gives the addresses that were acknowledged. */
function visitors(t: TestContext, store: Store) {
  const acknowledged: string[] = []
  let refused = 0
  let going = true
  t.after(() => {
    going = false
  })
  const lines = Array.from({ length: 4 }, async (_, line) => {
    for (let i = 0; going; i++) {
      const email = `visitor-${line}-${i}@example.com`
      await store.admit(signup('Visitor', email)).then(
        () => void acknowledged.push(email),
        error => {
          assert.ok(error instanceof StoreUnavailable, `${error}`)
          refused++
          return wait(10)
        },
      )
    }
  })
  return {
    refused: () => refused,
    async stop() {
      going = false
      await Promise.all(lines)
      return acknowledged
    },
  }
}

async function eachOnce(url: string, acknowledged: readonly string[]): Promise<void> {
  const contacts = await contactsIn(url)
  const stored = new Set(contacts.map(({ email }) => email))
  assert.equal(stored.size, contacts.length)
  assert.deepEqual(
    acknowledged.filter(email => !stored.has(email)),
    [],
  )
  assert.ok(contacts.every(({ events, deliveries }) => events === 1 && deliveries === 1))
}

/** Another session, for as long as it takes. */
async function session(t: TestContext, url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => {})
  await client.connect()
  t.after(() => client.end().catch(() => {}))
  return client
}

test('its sessions are ended again and again: nobody is refused, and nothing is stored twice', async t => {
  const { store, url } = await opened(t)
  const operator = await session(t, url)
  const crowd = visitors(t, store)
  for (let i = 0; i < 20; i++) {
    await wait(25)
    await operator.query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [
      'waitlist',
    ])
  }
  const acknowledged = await crowd.stop()
  assert.ok(acknowledged.length > 0)
  assert.equal(crowd.refused(), 0)
  await eachOnce(url, acknowledged)
})

const isAble = (store: Store): Promise<boolean> =>
  store.check().then(
    () => true,
    () => false,
  )

for (const mode of ['fast', 'immediate'] as const) {
  test(`a ${mode} restart: what was acknowledged is there, and the same store goes on`, async t => {
    const { store, url } = await opened(t)
    const crowd = visitors(t, store)
    await wait(100)
    await server.stop(mode)
    await server.start()
    const back = performance.now()
    await until(() => isAble(store))
    assert.equal((await store.admit(signup('Late', 'late@example.com'))).is, 'listed now')
    assert.ok(performance.now() - back < 5_000)
    await eachOnce(url, [...(await crowd.stop()), 'late@example.com'])
  })
}

test('a server that hangs is unavailable within bounds, and used again when it goes on', {
  skip: !isSlow && 'it runs in .ci/run',
}, async t => {
  const { store, url } = await opened(t)
  await store.admit(signup('Ada', 'ada@example.com'))
  server.pause()
  try {
    const since = performance.now()
    const calls = [
      store.admit(signup('Bob', 'bob@example.com')),
      ...Array.from({ length: 30 }, () => store.claim('webhook', 10)),
    ]
    await Promise.all(calls.map(call => assert.rejects(call, StoreUnavailable)))
    await assert.rejects(store.check(), StoreUnavailable)
    assert.ok(performance.now() - since < BOUND)
  } finally {
    server.goOn()
  }
  await until(() => isAble(store))
  const answer = await store.admit(signup('Bob', 'bob@example.com'))
  const [bob] = (await contactsIn(url)).filter(({ email }) => email === 'bob@example.com')
  // Told once that it failed, he may be on the list all the same; twice he is not.
  assert.ok(answer.is === 'already listed' || idOf(answer) === bob?.id)
  await eachOnce(url, ['ada@example.com', 'bob@example.com'])
  // Nobody was called about Ada: the lease of a claim that nobody heard of is given back.
  let claimed: string[] = []
  while (claimed.length < 2) {
    await wait(100)
    const deliveries = await store.claim('webhook', 10)
    assert.ok(deliveries.every(({ doubt }) => !doubt))
    claimed = [...claimed, ...deliveries.map(({ contact }) => contact.email)]
  }
  assert.deepEqual(claimed.sort(), ['ada@example.com', 'bob@example.com'])
})
