/** `sslmode` and `sslrootcert` mean what they mean to libpq (https://postgresql.org/docs/current/libpq-ssl.html). */
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { postgresStore } from '../../src/stores/postgres/store.ts'
import { OperatorError } from '../../src/waitlist/ports/log.ts'
import { signup } from '../contracts/store.place.ts'
import { startPostgres } from '../harness/postgres.ts'
import { rowsIn } from '../harness/postgres-contacts.ts'
import { recordingLog } from '../harness/service.ts'
import { fixture } from '../harness/tls.ts'

const secure = await startPostgres({ tls: { certificate: fixture('first.crt'), key: fixture('first.key') } })
const plain = await startPostgres()
after(() => Promise.all([secure.remove(), plain.remove()]))

const first = fileURLToPath(fixture('first.crt'))
const second = fileURLToPath(fixture('second.crt'))
const USED =
  "select ssl from pg_stat_ssl natural join pg_stat_activity where application_name = 'waitlist' and pid <> pg_backend_pid()"

/** Whether the connections of a store are encrypted; or why it is not opened. */
async function tried(server: typeof secure, query: string, host = '127.0.0.1'): Promise<boolean | string> {
  const bare = await server.database()
  const url = `${bare.replace('127.0.0.1', host)}${query}`
  try {
    const store = await postgresStore({ url, eventName: 'waitlist.joined', log: recordingLog().log })
    assert.equal((await store.admit(signup('Ada', 'ada@example.com'))).is, 'listed now')
    const used = await rowsIn<{ ssl: boolean }>(bare, USED)
    await store.close()
    return used.length > 0 && used.every(({ ssl }) => ssl)
  } catch (error) {
    assert.ok(error instanceof OperatorError, String(error))
    return error.message
  }
}

describe('TLS to PostgreSQL', { timeout: 60_000 }, () => {
  for (const [query, host] of [
    [`?sslmode=verify-ca&sslrootcert=${first}`],
    [`?sslmode=verify-full&sslrootcert=${first}`, 'localhost'],
    ['?sslmode=prefer'],
  ] as const) {
    const name = query.replaceAll(/\/.*\//g, '')
    test(`${name} at ${host ?? 'an address'} is encrypted`, async () => {
      assert.equal(await tried(secure, query, host), true)
    })
  }

  for (const mode of ['require', 'verify-ca', 'verify-full']) {
    test(`?sslmode=${mode} refuses a server whose certificate is of another authority`, async () => {
      assert.match(
        String(await tried(secure, `?sslmode=${mode}&sslrootcert=${second}`)),
        /cannot be used: .*certificate/,
      )
    })
  }

  test('verify-full refuses who is not known, also without an authority of its own', async () => {
    assert.match(String(await tried(secure, '?sslmode=verify-full')), /cannot be used: .*certificate/)
  })

  test('verify-ca needs an authority, and a file that is missing is told at once', async () => {
    assert.match(String(await tried(secure, '?sslmode=verify-ca')), /requires specifying a CA/)
    assert.match(String(await tried(secure, '?sslmode=require&sslrootcert=missing.crt')), /ENOENT.*missing\.crt/)
  })

  test('a server without TLS is refused where it is asked for, and used where it is not', async () => {
    assert.match(String(await tried(plain, '?sslmode=require')), /does not support SSL/)
    for (const query of ['', '?sslmode=disable', '?sslmode=prefer', '?sslmode=allow']) {
      assert.equal(await tried(plain, query), false, query)
    }
    assert.equal(await tried(secure, '?sslmode=disable'), false)
  })
})
