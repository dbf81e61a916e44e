import assert from 'node:assert/strict'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { linux, root } from '../../torture/needs.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { webhookSecret } from '../harness/instances.ts'
import { complaintsIn, logOf, runProgram, until } from '../harness/program.ts'
import { startReceiver } from '../harness/receiver.ts'
import { isSlow } from '../harness/slow.ts'

const IN_A = 1
const ANSWER = 0x8180

/** A name server that says 127.0.0.1 for some names and nothing for the others, and a command that makes a program ask it. */
async function nameServer(t: TestContext, folder: string, knows: (name: string) => boolean): Promise<string[]> {
  // Resolvers know no other port, so the address is one that nobody else has.
  const address = `127.${process.pid & 0xff}.${(process.pid >> 8) & 0xff}.${2 + Math.floor(Math.random() * 250)}`
  const socket = createSocket('udp4', (question, { port }) => {
    const name = question.toString('latin1')
    if (!knows(name)) return
    const end = question.indexOf(0, 12) + 5
    const head = Buffer.from(question.subarray(0, end))
    const hasAddress = head.readUInt16BE(end - 4) === IN_A
    head.writeUInt16BE(ANSWER, 2)
    head.writeUInt16BE(hasAddress ? 1 : 0, 6)
    head.fill(0, 8, 12)
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1])
    socket.send(hasAddress ? Buffer.concat([head, record]) : head, port, '127.0.0.1')
  })
  t.after(() => socket.close())
  socket.bind(53, address)
  await once(socket, 'listening')
  const file = join(folder, 'resolv.conf')
  writeFileSync(file, `nameserver ${address}\n`)
  return ['unshare', '--mount', 'sh', '-c', `mount --bind ${file} /etc/resolv.conf && exec "$@"`, 'sh']
}

describe('names that no name server answers for', () => {
  test('hold up nobody else, and the log says what is wrong', {
    skip: linux() || root() || (!isSlow && 'it runs in .ci/run'),
  }, async t => {
    const cwd = temporaryFolder(t)
    // Each event needs a new connection, and so asks for the name again.
    const receiver = await startReceiver(t, () => ({ status: 204, headers: { connection: 'close' } }))
    const through = await nameServer(t, cwd, name => name.includes('receiver'))
    const env = {
      HOST: '127.0.0.1',
      WEBHOOK_URL: receiver.url.replace('127.0.0.1', 'receiver.internal'),
      WEBHOOK_SECRET: webhookSecret,
      SLACK_WEBHOOK_URL: 'https://slack.internal/services/T/B/x',
      DISCORD_WEBHOOK_URL: 'https://discord.internal/api/webhooks/1/x',
    }
    const program = await runProgram(t, env, { cwd, through })
    const told = () => complaintsIn(logOf(program)).filter(({ destination }) => destination !== undefined)
    for (let i = 0; i < 5; i++) {
      const body = JSON.stringify({ name: 'Visitor', email: `visitor-${i}@example.com` })
      const headers = { 'content-type': 'application/json' }
      assert.equal((await fetch(`${program.baseUrl}/api/waitlist`, { method: 'POST', headers, body })).status, 200)
      await wait(600)
    }
    await until(() => told().length >= 2 && receiver.received.length === 5)
    assert.deepEqual(
      told()
        .map(({ destination }) => destination)
        .sort(),
      ['discord', 'slack'],
    )
    // The second is what the operating system says, once it has given up.
    for (const { why } of told()) assert.match(String(why), /no name server answers for|EAI_AGAIN/)
  })
})
