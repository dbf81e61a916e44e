import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { sqliteStore } from '../src/stores/sqlite/store.ts'
import { signup } from './contracts/store.place.ts'
import { blocksOf, textOf } from './documents.ts'
import { checkout } from './harness/checkout.ts'
import { contactsIn } from './harness/database.ts'
import { isSlow } from './harness/slow.ts'

const own = { PATH: process.env.PATH, HOME: process.env.HOME }

/** Types the commands under this heading of the page as they stand there, and returns what each of them printed. */
async function type(cwd: string, heading: string, env: NodeJS.ProcessEnv = own): Promise<readonly string[]> {
  const blocks = blocksOf(textOf('docs/bots.md')).filter(
    ({ language, under }) => language === 'sh' && under === heading,
  )
  const printed: string[] = []
  for (const line of blocks.flatMap(({ lines }) => lines)) {
    printed.push((await promisify(execFile)('sh', ['-c', line], { cwd, env })).stdout)
  }
  return printed
}

const options = { timeout: 120_000, skip: !isSlow && 'slow: WAITLIST_SLOW_TESTS=1' }

test('the commands of docs/bots.md show held signups, let them in and delete them', options, async t => {
  const cwd = await checkoutWithHeld(t)
  const states = () => contactsIn(join(cwd, 'data', 'waitlist.db')).map(({ email, state }) => `${email} ${state}`)
  assert.deepEqual(states(), [
    'eva.lund@gmail.com listed',
    'evalund+x@gmail.com held',
    'ada@example.com held',
    'ben@example.com held',
    'cleo@acme.example held',
  ])
  const [held] = await type(cwd, 'held-signups')
  for (const reason of ['same-mailbox', 'link-in-name', 'above-limit']) assert.match(held!, new RegExp(reason))
  assert.deepEqual(
    states(),
    ['eva.lund@gmail.com', 'ada@example.com', 'ben@example.com', 'cleo@acme.example'].map(email => `${email} listed`),
  )
})

test('the commands of docs/bots.md make a list of domains that is accepted', options, async t => {
  // The package comes from the registry, by what this machine says of proxies and certificates.
  const checked = (await type(checkout(t), 'lists-of-domains', process.env)).at(-1)
  assert.match(checked!, /\b\d{2},\d{3} domains are blocked/)
})

/** One is on the list, and one is held for each command of the page. */
async function checkoutWithHeld(t: TestContext): Promise<string> {
  const cwd = checkout(t)
  const store = await sqliteStore({
    path: join(cwd, 'data', 'waitlist.db'),
    eventName: 'waitlist.joined',
    minimumFree: 0,
    holds: { above: 1, window: 3_600_000, suspicious: true },
  })
  await store.admit(signup('Eva', 'eva.lund@gmail.com'))
  await store.admit(signup('Eva', 'evalund+x@gmail.com'))
  await store.admit(signup('Ada www.shop.example', 'ada@example.com'))
  await store.admit(signup('Ben', 'ben@example.com'))
  await store.admit(signup('Cleo', 'cleo@acme.example'))
  await store.close()
  return cwd
}
