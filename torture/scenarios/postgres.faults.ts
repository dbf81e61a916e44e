import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { startPostgres } from '../../test/harness/postgres.ts'
import { grants, makeRole, ROLE, roleUrl } from '../../test/harness/postgres-role.ts'
import { underLoad } from '../../test/harness/under-load.ts'
import { becomes } from '../busy.ts'
import type { Scenario } from '../scenario.ts'

/** Milliseconds for which a fault lasts after it was told. */
const LASTS = 3_000

export const scenario: Scenario = {
  promise:
    'PostgreSQL is locked, read-only, without rights, stopped, stands still, or fails over: nothing acknowledged is lost, and health tells it within five seconds.',
  least: 18,
  weight: 4,
  async run(scene) {
    const server = await startPostgres()
    scene.after(() => server.remove())
    const url = await server.database()
    const first = await scene.service({ DATABASE_URL: url })
    await first.end('SIGTERM')
    await server.run(url, makeRole, ...grants(ROLE))
    const database = roleUrl(url)
    const { ledger, programs, during, assertNothingLost } = await underLoad(scene, url, {
      instances: 3,
      rest: 10,
      entry: scene.entry,
      envOf: () => ({ DATABASE_URL: database }),
    })

    const locked = async (): Promise<() => Promise<unknown>> => {
      const client = new pg.Client(url)
      await client.connect()
      await client.query('begin; lock table contact in access exclusive mode')
      return () => client.end()
    }
    const revoked = async () => {
      await server.run(url, `revoke insert on contact from ${ROLE}`)
      return () => server.run(url, `grant insert on contact to ${ROLE}`)
    }
    const readOnly = async () => {
      const setting = `alter database ${new URL(url).pathname.slice(1)} set default_transaction_read_only`
      const end =
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'waitlist' and datname = current_database()"
      await server.run(url, `${setting} = on`, end)
      return () => server.run(url, 'set default_transaction_read_only = off', `${setting} = off`)
    }
    const stopped = async () => {
      await server.stop('fast')
      return () => server.start()
    }
    const failedOver = async () => {
      await server.stop('immediate')
      server.failOver()
      return () => server.start()
    }
    const paused = async () => {
      server.pause()
      return async () => server.goOn()
    }
    const faults = { locked, revoked, 'read-only': readOnly, stopped, 'failed over': failedOver, paused }
    const told = new Map<string, number>()
    const back = new Map<string, number>()
    const note = (times: Map<string, number>, name: string, took: readonly number[]) =>
      times.set(name, Math.max(times.get(name) ?? 0, ...took))
    const become = (status: number) => Promise.all(programs.map(({ baseUrl }) => becomes(baseUrl, status, 15_000)))

    let count = 0
    do {
      for (const [name, fault] of Object.entries(faults)) {
        await during(async () => {
          await wait(scene.random() * 500)
          const repair = await fault()
          note(told, name, await become(503))
          await wait(scene.random() * LASTS)
          await repair()
          note(back, name, await become(200))
        })
        count++
      }
    } while (!scene.isOver(0.7) && count < 120)
    await assertNothingLost()
    return {
      figures: [
        { name: 'faults', value: count },
        { name: 'acknowledged signups', value: ledger.acknowledged },
        ...[...told].map(([name, value]) => ({
          name: `${name}: until health said so`,
          value,
          unit: 'ms',
          most: 5_000,
        })),
        ...[...back].map(([name, value]) => ({ name: `${name}: until it was back`, value, unit: 'ms', most: 5_000 })),
      ],
    }
  },
}
