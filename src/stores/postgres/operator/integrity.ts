import { ORPHANS, staleLeases } from '../../integrity.ts'
import type { IntegrityCheck } from '../../operator/integrity.ts'
import { secretOf } from './erasure.ts'
import { lend } from './open.ts'

export const integrity = (url: string): IntegrityCheck => ({
  checkIntegrity: () =>
    lend(url, async ({ run }) => {
      const [tables] = await run<{ made: boolean }>("select to_regclass('delivery') is not null as made")
      if (!tables?.made) return null
      const count = async (text: string) => Number((await run<{ n: string }>(text))[0]!.n)
      return {
        damage: null,
        orphans: await count(ORPHANS),
        unrecognised: await count(
          'select count(*) as n from contact where email_key <> lower(email collate "C") collate "C"',
        ),
        staleLeases: await count(staleLeases(milliseconds => `now() - ${milliseconds} * interval '1 millisecond'`)),
        size: await count('select pg_database_size(current_database()) as n'),
        free: null,
      }
    }),
  secret: name => lend(url, async ({ run }) => (await secretOf(run, name)) ?? null),
})
