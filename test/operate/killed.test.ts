/** Commands and a service that are killed at work: each change is there as a whole, or not at all, and can be completed. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { LINKS_SECRET, linksOf } from '../../src/confirm/token.ts'
import { isSlow, seeded, seedOf } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { visit } from '../harness/load.ts'
import { logOf, runCommand, runProgram, spawnProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { forEachEngine, type Place, signup } from '../store/place.ts'

const skip = !isSlow && 'it runs in .ci/run'
const KILLS = 3
/** So many that a change of them takes many steps. */
const CONTACTS = 5_000
const LINES = 30_000
const ASKED = 120

/** Nobody listens there. */
const mails = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'hello@example.com' }
const webhook = { WEBHOOK_URL: 'http://127.0.0.1:1/hook', WEBHOOK_SECRET: webhookSecret }
const destinations = ['webhook', 'mail']

const envOf = ({ location }: Place) => ({
  HOST: '127.0.0.1',
  RATE_LIMIT: '1000000',
  DATABASE_URL: location.kind === 'sqlite' ? `sqlite:${location.path}` : location.url,
})

/** Fills the list with contacts in this state. */
async function fill({ open, operator, sql }: Place, state: 'held' | 'listed'): Promise<void> {
  await (await open()).close()
  const rows = Array.from({ length: CONTACTS }, (_, i) => ({
    signup: signup('Visitor', `visitor-${i}@example.com`),
  }))
  const batches = (async function* () {
    yield rows
  })()
  await operator.importContacts(batches, { targets: null, dryRun: false })
  if (state === 'held') await sql("update contact set state = 'held', reason = 'above-limit' returning 1")
}

/** What there is of each state; `fewest` and `most`: the deliveries of one contact. */
async function statesIn({ sql }: Place) {
  const rows = await sql<{ state: string }>(
    `select state, count(*) as contacts, count(event_at) as events, count(distinct code) as codes,
      min(deliveries) as fewest, max(deliveries) as most, min(number) as first, max(number) as last
    from (
      select contact.*, (select count(*) from delivery where delivery.contact = contact.number) as deliveries from contact
    ) as each group by state`,
  )
  return new Map(
    rows.map(({ state, ...numbers }) => [
      state,
      Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value)])),
    ]),
  )
}

const commands = [
  { args: ['release', '--all'], from: 'held', to: 'listed', events: 1, codes: 0 },
  { args: ['invite', '--search', '@', '--yes'], from: 'listed', to: 'invited', events: 0, codes: 1 },
] as const

forEachEngine('killed again and again', place => {
  for (const { args, from, to, events, codes } of commands) {
    test(`${args[0]}: whoever is ${to} has all that belongs to it, nobody else has any, and nobody is lost`, {
      skip,
    }, async t => {
      const here = await place(t)
      await fill(here, from)
      const cwd = temporaryFolder(t)
      const env = { ...envOf(here), ...webhook, ...mails }
      const left = async () => (await statesIn(here)).get(from)?.contacts ?? 0
      async function assertWhole(): Promise<void> {
        const states = await statesIn(here)
        const [before, after] = [states.get(from), states.get(to)]
        assert.equal((before?.contacts ?? 0) + (after?.contacts ?? 0), CONTACTS)
        if (after !== undefined) {
          assert.deepEqual([after.fewest, after.most], [destinations.length, destinations.length])
          assert.deepEqual([after.events, after.codes], [after.contacts! * events, after.contacts! * codes])
        }
        if (before === undefined) return
        assert.deepEqual([before.most, before.events, before.codes], [0, 0, 0])
        if (after !== undefined) assert.ok(after.last! < before.first!, 'first come, first served')
      }
      let cut = 0
      for (let i = 0; i < KILLS; i++) {
        const before = await left()
        const program = spawnProgram(t, env, { cwd, args: [...args] })
        await until(async () => (await left()) < before || program.process.exitCode !== null)
        program.process.kill('SIGKILL')
        await program.exited
        await assertWhole()
        if ((await left()) > 0) cut++
      }
      assert.ok(cut > 0, 'it was never killed before its end')
      await runCommand(t, cwd, [...args], env)
      await assertWhole()
      assert.equal(await left(), 0)
    })
  }

  test('import, beside a service: it ends with the whole list, in order', { skip }, async t => {
    const here = await place(t)
    const random = seeded(seedOf(t))
    const cwd = temporaryFolder(t)
    const service = await runProgram(t, envOf(here), { cwd })
    const emails = Array.from({ length: LINES }, (_, i) => `${(i * 7_919) % LINES}@example.com`)
    writeFileSync(join(cwd, 'list.csv'), `name,email\n${emails.map((email, i) => `Visitor ${i},${email}\n`).join('')}`)
    const acknowledged: string[] = []
    let goesOn = true
    const visitors = (async () => {
      for (let i = 0; goesOn; i++) {
        const email = `visitor-${i}@example.com`
        assert.equal((await visit(service, email))?.alreadyExisted, false)
        acknowledged.push(email)
      }
    })()
    const start = () => spawnProgram(t, envOf(here), { cwd, args: ['import', 'list.csv'] })
    let killed = 0
    for (let i = 0; i < KILLS; i++) {
      const importing = start()
      await Promise.race([wait(500 + random() * 1_500), importing.exited])
      importing.process.kill('SIGKILL')
      if ((await importing.exited) === null) killed++
    }
    assert.ok(killed > 0)
    const last = start()
    assert.equal(await last.exited, 0, last.stderr())
    goesOn = false
    await visitors
    const stored = (await Array.fromAsync(here.operator.contacts({}))).map(({ email }) => email)
    const isVisitor = (email: string) => email.startsWith('visitor-')
    assert.deepEqual(
      stored.filter(email => !isVisitor(email)),
      emails,
    )
    assert.deepEqual(stored.filter(isVisitor), acknowledged)
  })

  test('a service keeps each confirmation that it acknowledged, and sends the event of each', { skip }, async t => {
    const here = await place(t)
    const cwd = temporaryFolder(t)
    const received = new Set<string>()
    const receiver = await startReceiver(t, ({ headers }) => {
      received.add(headers['webhook-id']!)
      return { status: 204 }
    })
    const base = 'https://waitlist.example.com'
    const env = { ...envOf(here), ...mails, MAILS: 'none', CONFIRM: 'mail', BASE_URL: base }
    const started = async () => {
      const service = await runProgram(t, { ...env, ...webhook, WEBHOOK_URL: receiver.url }, { cwd })
      const { listening } = logOf(service).find(({ msg }) => msg === 'waitlist is ready') as { listening: string }
      return { service, listening }
    }
    const contacts = () => Array.fromAsync(here.operator.contacts({}))

    const first = await started()
    for (let i = 0; i < ASKED; i++) await visit({ baseUrl: first.listening }, `${i}@example.com`)
    assert.equal(await first.service.end('SIGTERM'), 0)
    const [secret] = await here.sql<{ value: string }>(`select value from secret where name = '${LINKS_SECRET}'`)
    const links = linksOf(base, secret!.value)
    const asked = (await contacts()).map(contact => ({ id: contact.id, link: links.confirm(contact) }))
    assert.equal(asked.length, ASKED)
    const press = (link: string, at: string) => fetch(link.replace(base, at), { method: 'POST' }).catch(() => null)

    const confirmed = new Set<string>()
    for (let i = 0; i < KILLS; i++) {
      const { service, listening } = await started()
      const left = asked.filter(({ id }) => !confirmed.has(id)).slice(0, ASKED / KILLS)
      const before = confirmed.size
      const pressed = left.map(async ({ id, link }) => {
        if ((await press(link, listening))?.status === 200) confirmed.add(id)
      })
      await until(() => confirmed.size > before)
      await service.end('SIGKILL')
      await Promise.all(pressed)
      for (const { id, state, confirmedAt, event } of await contacts()) {
        assert.equal(state === 'listed', confirmedAt !== undefined && event !== undefined)
        if (confirmed.has(id)) assert.equal(state, 'listed')
      }
    }
    const last = await started()
    for (const { link } of asked) assert.equal((await press(link, last.listening))?.status, 200)
    // What was in flight is due again when its lease ends.
    await until(async () => (await here.operator.counts()).deliveries.every(({ state }) => state !== 'waiting'))
    assert.deepEqual([...received].sort(), asked.map(({ id }) => `evt_${id}`).sort())
  })
})
