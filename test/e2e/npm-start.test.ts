import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { checkout, npmStart } from '../harness/npm.ts'
import { until } from '../harness/program.ts'

const email = 'ada@example.com'
const body = JSON.stringify({ name: 'Ada Lovelace', email })

const isListening = (port: number): Promise<boolean> =>
  new Promise(resolve => {
    const socket = connect(port, '127.0.0.1')
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })

/** How people stop `npm start`. A terminal tells the whole process group, and npm passes on what it is told. */
const stops = [
  ['SIGTERM to npm, as a supervisor sends it', 'SIGTERM', 'npm'],
  ['Ctrl-C in a terminal', 'SIGINT', 'group'],
] as const

describe('npm start', { concurrency: true }, () => {
  for (const [title, signal, to] of stops) {
    test(`${title} stops the service, which first answers the request in progress`, async t => {
      const folder = checkout(t)
      const { baseUrl, stdout, ended, send } = await npmStart(t, folder)
      const { pid } = JSON.parse(/^\{.*"waitlist is ready".*$/m.exec(stdout())![0]) as { pid: number }
      const headers = { 'content-type': 'application/json', expect: '100-continue' }
      const posted = request(`${baseUrl}/api/waitlist`, { method: 'POST', headers })
      const answered = once(posted, 'response')
      posted.flushHeaders()
      await once(posted, 'continue')

      send(signal, to)
      await until(async () => !(await isListening(Number(new URL(baseUrl).port))))
      posted.end(body)
      const [response] = await answered
      response.resume()
      assert.equal(response.statusCode, 200)

      assert.equal(await ended, 0)
      assert.match(stdout(), /"msg":"stopped"/)
      assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })
      assert.deepEqual(
        contactsIn(join(folder, 'data', 'waitlist.db')).map(contact => contact.email),
        [email],
      )
    })
  }
})
