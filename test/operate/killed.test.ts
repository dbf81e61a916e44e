/** Commands that are killed at work: each change is there as a whole, or not at all, and can be completed. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { isSlow, seeded, seedOf } from '../harness/environment.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { visit } from '../harness/load.ts'
import { runCommand, runProgram, spawnProgram, until } from '../harness/program.ts'
import { forEachEngine, type Place, signup } from '../store/place.ts'

const skip = !isSlow && 'it runs in .ci/run'
const KILLS = 3
/** So many that a change of them takes many steps. */
const CONTACTS = 5_000
const LINES = 30_000

/** Nobody listens there. */
const mails = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'hello@example.com' }
const webhook = { WEBHOOK_URL: 'http://127.0.0.1:1/hook', WEBHOOK_SECRET: webhookSecret }
const destinations = ['webhook', 'mail']

const envOf = ({ location }: Place) => ({
  HOST: '127.0.0.1',
  RATE_LIMIT: '1000000',
  DATABASE_URL: location.kind === 'sqlite' ? `sqlite:${location.path}` : location.url,
})

async function fill({ open, operator }: Place): Promise<void> {
  await (await open()).close()
  const rows = Array.from({ length: CONTACTS }, (_, i) => ({
    signup: signup('Visitor', `visitor-${i}@example.com`),
  }))
  const batches = (async function* () {
    yield rows
  })()
  await operator.importContacts(batches, { targets: null, dryRun: false })
}

/** What there is of each state; `fewest` and `most`: the deliveries of one contact. */
async function statesIn({ sql }: Place) {
  const rows = await sql<{ state: string }>(
    `select state, count(*) as contacts, count(distinct code) as codes,
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

forEachEngine('killed again and again', place => {
  test('invite: whoever is invited has all that belongs to it, nobody else has any, and nobody is lost', {
    skip,
  }, async t => {
    const here = await place(t)
    await fill(here)
    const cwd = temporaryFolder(t)
    const args = ['invite', '--search', '@', '--yes']
    const env = { ...envOf(here), ...webhook, ...mails }
    const left = async () => (await statesIn(here)).get('listed')?.contacts ?? 0
    async function assertWhole(): Promise<void> {
      const states = await statesIn(here)
      const [listed, invited] = [states.get('listed'), states.get('invited')]
      assert.equal((listed?.contacts ?? 0) + (invited?.contacts ?? 0), CONTACTS)
      if (invited !== undefined) {
        assert.deepEqual([invited.fewest, invited.most], [destinations.length, destinations.length])
        assert.equal(invited.codes, invited.contacts)
      }
      if (listed !== undefined) assert.deepEqual([listed.most, listed.codes], [0, 0])
      if (listed !== undefined && invited !== undefined)
        assert.ok(invited.last! < listed.first!, 'first come, first served')
    }
    let cut = 0
    for (let i = 0; i < KILLS; i++) {
      const before = await left()
      const program = spawnProgram(t, env, { cwd, args })
      await until(async () => (await left()) < before || program.process.exitCode !== null)
      program.process.kill('SIGKILL')
      await program.exited
      await assertWhole()
      if ((await left()) > 0) cut++
    }
    assert.ok(cut > 0, 'it was never killed before its end')
    await runCommand(t, cwd, args, env)
    await assertWhole()
    assert.equal(await left(), 0)
  })

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
      await Promise.race([wait(300 + random() * 900), importing.exited])
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
})
