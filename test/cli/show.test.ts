import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runCommand as run } from '../harness/program.ts'
import { id, scene } from './contacts.scene.ts'

const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ'

describe('waitlist show', { concurrency: true, timeout: 60_000 }, () => {
  test('tells the history of one contact and what became of each delivery', async t => {
    const { cwd } = await scene(t)
    const { code, stdout, stderr } = await run(t, cwd, ['show', 'ada@EXAMPLE.com'])
    assert.deepEqual([code, stderr], [0, ''])
    const lines = [
      `id           ${id}`,
      'name         Ada Lovelace',
      'address      Ada@Example\\.com',
      'state        listed',
      `signed up    ${time}`,
      `joined       ${time}, waitlist\\.joined, evt_${id}`,
      'source       not known',
      'provider id  at-A',
      '',
      'delivery  state      destination  attempts  due or settled        why',
      `\\d         delivered  webhook      1         ${time}`,
      `\\d         abandoned  mail         1         ${time}  HTTP 404: \\[31m not found`,
      '',
    ]
    assert.match(stdout, new RegExp(`^${lines.join('\n')}$`))
  })

  test('who is pending, who was erased before, and who never had an event', async t => {
    const { cwd } = await scene(t)
    const bob = (await run(t, cwd, ['show', 'bob@example.com'])).stdout
    assert.match(bob, /^state +pending: the provider has not confirmed it yet$/m)
    assert.match(bob, /^joined +not yet$/m)
    assert.match(bob, /^erased +1970-01-01T00:00:00Z; they signed up again$/m)
    assert.match(bob, /^\d+ +waiting +loops /m)
    const cyd = (await run(t, cwd, ['show', 'cyd@example.com'])).stdout
    assert.match(cyd, /^name {9}Cyd evil$/m)
    assert.match(cyd, /^joined +without an event: imported, or known to the provider before$/m)
    assert.match(cyd, /^source +utm_source=news, utm_medium==1\+1, ref=x, "y"$/m)
    assert.match(cyd, /\n\nThere are no deliveries\.\n$/)
  })

  test('json is one object with the deliveries', async t => {
    const { cwd } = await scene(t)
    const { code, stdout } = await run(t, cwd, ['show', '--json', 'ada@example.com'])
    assert.equal(code, 0)
    assert.equal(stdout.trimEnd().split('\n').length, 1)
    const { deliveries, event, ...contact } = JSON.parse(stdout)
    assert.deepEqual(Object.keys(contact), ['id', 'name', 'email', 'state', 'createdAt', 'providerId'])
    assert.deepEqual(Object.keys(event), ['id', 'name', 'at'])
    assert.deepEqual(
      deliveries.map(({ destination, state, why }: Record<string, string>) => [destination, state, why]),
      [
        ['webhook', 'delivered', null],
        ['mail', 'abandoned', 'HTTP 404:\u001b[31m not\n found'],
      ],
    )
  })

  test('who is not there is exit code 1, and whether they were erased', async t => {
    const { cwd } = await scene(t)
    const nobody = await run(t, cwd, ['show', 'nobody@example.com'])
    const sentence = 'waitlist: There is no contact with the address'
    assert.deepEqual([nobody.code, nobody.stdout, nobody.stderr], [1, '', `${sentence} nobody@example.com.\n`])
    const gone = await run(t, cwd, ['show', '--json', 'gone@example.com'])
    const erased = `${sentence} gone@example.com. It was erased at 1970-01-01T00:00:00Z.\n`
    assert.deepEqual([gone.code, gone.stdout, gone.stderr], [1, '', erased])
  })
})
