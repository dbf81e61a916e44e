import assert from 'node:assert/strict'
import { join as joinPath } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { VendorName } from '../../src/providers/list.ts'
import { sqliteStore } from '../../src/stores/sqlite/store.ts'
import { handOver } from '../../src/waitlist/delivery/handover.ts'
import { join } from '../../src/waitlist/join.ts'
import { opened, PATIENT } from '../contracts/provider.ts'
import { signup } from '../contracts/store.ts'
import { contactsIn } from '../harness/database.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { type Misbehaviour, startReceiver } from '../harness/receiver.ts'
import { recordingLog } from '../harness/service.ts'
import { loopsFake, loopsSettings } from './loops.fake.ts'
import { plunkFake, plunkSettings } from './plunk.fake.ts'

const EMAIL = 'ada@example.com'

test('an attempt that took effect unheard is not forgotten while another provider is set', async t => {
  const path = joinPath(temporaryFolder(t), 'waitlist.db')
  const loops = loopsFake()
  const plunk = plunkFake()
  const atLoops = await startReceiver(t, loops.answer)
  const atPlunk = await startReceiver(t, plunk.answer)
  const settings: Partial<Record<VendorName, Record<string, string>>> = {
    loops: loopsSettings(atLoops.url),
    plunk: plunkSettings(atPlunk.url),
  }

  /** The service from its start to its stop: she signs up, and what `met` says happens to the call. */
  async function once(test: TestContext, vendor: VendorName, server: typeof atLoops, met: readonly Misbehaviour[]) {
    const provider = await opened(test, { vendor }, settings[vendor]!)
    const store = await sqliteStore({ path, eventName: 'waitlist.joined', provider: vendor, destinations: [] })
    const announce = () => {}
    const handing = handOver({ store, log: recordingLog().log, announce, provider })
    server.next(...met)
    const parts = {
      store,
      handOver: handing,
      timeout: PATIENT,
      inBackground: null,
      signal: new AbortController().signal,
      announce,
    }
    const told = await join(signup('Ada Lovelace', EMAIL), parts)
    await store.close()
    return told.is
  }

  assert.equal(await once(t, 'loops', atLoops, ['reset after']), 'kept')
  assert.equal(loops.count(EMAIL), 1, 'it took effect')
  assert.equal(await once(t, 'plunk', atPlunk, ['500 before']), 'kept')
  assert.equal(await once(t, 'loops', atLoops, []), 'new')
  const [contact, ...others] = contactsIn(path)
  assert.deepEqual([contact?.state, contact?.events, others.length], ['listed', 1, 0])
})
