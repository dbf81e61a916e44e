import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { type TestContext, test } from 'node:test'
import { OperatorError } from '../../src/config/operator.ts'
import { openChannel } from '../../src/notify/channel.ts'
import type { Database } from '../../src/store/database.ts'
import { dump, load } from '../../src/store/dump.ts'
import {
  emailsOf,
  forEachEngine,
  type MakePlace,
  only,
  onPostgres,
  onSqlite,
  type Place,
  pendingNow,
  signup,
  stored,
} from './place.ts'

async function textOf(database: Database): Promise<string> {
  let text = ''
  await dump(database, async lines => {
    text += lines
  })
  return text
}
const dumpOf = (here: Place) => here.command(textOf)
const loadInto = (here: Place, text: string) => here.command(database => load(database, () => linesOf(text)), true)

async function* linesOf(text: string): AsyncGenerator<string> {
  const lines = text.split('\n')
  yield* lines.at(-1) === '' ? lines.slice(0, -1) : lines
}

const proof = (nonce: string) => ({ nonce, expires: new Date('2040-01-01') })
const parts = { provider: 'provider', destinations: ['webhook'], trackSources: true } as const
const holds = { above: null, suspicious: true }

/** A list with rows in each table, and with what is hard to write. */
async function rich(place: MakePlace, t: TestContext): Promise<Place> {
  const here = await place(t)
  const store = await here.open({ ...parts, holds })
  const odd = { ...signup('O\'Neill "\\" 🦀\u00A0é', 'odd+x@example.com'), source: { ref: '\\n {}', utm_source: 'ü' } }
  const admission = await store.admit({ ...odd, proof: proof('b') })
  assert.ok(admission.is === 'pending now')
  await store.settle(admission.delivery, { is: 'listed', joined: true, providerId: '\u2028id' })
  await store.settle(await only(store), { is: 'abandoned', why: 'it said\r\n"no"\u2029' })
  for (const nonce of ['A', 'a', 'B', '_', '-', 'é']) {
    await store.admit({ ...signup('Crowd', `crowd-${nonce.codePointAt(0)}@example.com`), proof: proof(nonce) })
    await store.secret(`secret ${nonce}`)
    await store.transaction(tx => openChannel(tx, `channel ${nonce}`))
  }
  await store.admit(signup('www.example.net', 'held@example.com'))
  await store.settle(await pendingNow(store), { is: 'listed', joined: true })
  await here.operator.invite({ addresses: ['ada@example.com'] }, 1, { eventName: 'invited', destinations: ['mail'] })
  await pendingNow(store, 'gone@example.com')
  await here.operator.erase('gone@example.com')
  await store.close()
  return here
}

forEachEngine('a dump', place => {
  test('there and back gives the same bytes, on each engine; and the service goes on', async t => {
    const here = await rich(place, t)
    const text = await dumpOf(here)
    assert.deepEqual(await dumpOf(here), text)
    for (const target of [await onSqlite(t), await onPostgres(t)]) {
      const counts = await loadInto(target, text)
      assert.deepEqual(counts, { contact: 9, delivery: 9, channel: 6, erased: 1, secret: 7, proof: 7 })
      assert.equal(await dumpOf(target), text)
      assert.deepEqual(
        await target.operator.person('odd+x@example.com'),
        await here.operator.person('odd+x@example.com'),
      )
      const store = await target.open({ ...parts, holds })
      assert.equal((await store.admit(signup('Again', 'ODD+x@example.com'))).is, 'already listed')
      assert.equal((await store.admit({ ...signup('New', 'new@example.com'), proof: proof('b') })).is, 'spent')
      const next = await pendingNow(store, 'new@example.com')
      assert.equal(await store.settle(next, { is: 'listed', joined: true }), true)
      const numbers = await target.sql<{ number: number }>('select number from contact order by number desc limit 2')
      assert.ok(numbers[0]!.number > numbers[1]!.number)
      assert.ok((await target.operator.person('gone@example.com')).erasedAt)
      assert.deepEqual(emailsOf(await store.claim('webhook', 9)), ['ada@example.com', 'new@example.com'])
    }
  })

  test('of thousands, while signups go on, it is of one moment', async t => {
    const here = await place(t)
    const store = await here.open({ destinations: ['webhook'] })
    const join = (from: number) =>
      Promise.all(Array.from({ length: 1_100 }, (_, i) => store.admit(signup('V', `v${from + i}@example.com`))))
    await join(0)
    let joining: Promise<unknown> | undefined
    let text = ''
    await here.command(database =>
      dump(database, async lines => {
        text += lines
        if (text.includes('contact')) joining ??= join(10_000)
        await joining
      }),
    )
    const target = await onSqlite(t)
    const counts = await loadInto(target, text)
    assert.deepEqual([counts.contact, counts.delivery], [1_100, 1_100])
    assert.equal((await stored(target)).length, 1_100)
    assert.equal((await stored(here)).length, 2_200)
  })

  test('one that is cut or changed, and a target that is not empty, are refused with a sentence, and nothing changes', async t => {
    const text = await dumpOf(await rich(place, t))
    const target = await place(t)
    await target.command(async () => {}, true)
    const lines = text.split('\n').slice(0, -1)
    /** With a checksum that is right. */
    const signed = (changed: readonly string[]) => {
      const body = changed.slice(0, -1)
      const sha256 = createHash('sha256')
        .update(body.map(line => `${line}\n`).join(''))
        .digest('hex')
      return [...body, JSON.stringify({ ...JSON.parse(changed.at(-1)!), sha256 })]
    }
    const replaced = (what: string, by: string) => lines.map(line => line.replace(what, by))
    for (const [what, changed] of Object.entries({
      'an empty file': [],
      'no dump': ['name,email', 'Ada,ada@example.com'],
      'another form': replaced('waitlist dump 1', 'waitlist dump 2'),
      'cut after a line': lines.slice(0, 9),
      'cut in a line': [...lines.slice(0, 5), lines[5]!.slice(0, -3)],
      'without a row': lines.toSpliced(3, 1),
      'with rows in another order': lines.toSpliced(2, 2, lines[3]!, lines[2]!),
      'with another name': replaced('"Crowd"', '"Eve"'),
      'two dumps': [...lines, ...lines],
      'an unknown table, signed': signed(replaced('"table":"proof"', '"table":"sqlite_schema"')),
      'SQL in a column, signed': signed(replaced('"mailbox":', '"mailbox) select 1 --":')),
    })) {
      await assert.rejects(loadInto(target, changed.map(line => `${line}\n`).join('')), OperatorError, what)
      assert.deepEqual(await stored(target), [], what)
    }
    await loadInto(target, text)
    await assert.rejects(loadInto(target, text), /^OperatorError: .* is not empty\./)
    assert.equal(await dumpOf(target), text)
  })
})
