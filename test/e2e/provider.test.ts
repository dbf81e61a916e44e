import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { contactsIn } from '../harness/database.ts'
import { isSlow } from '../harness/environment.ts'
import { visit } from '../harness/load.ts'
import { exitInTime, hasSaid, until } from '../harness/program.ts'
import {
  assertOnce,
  CREATE,
  completed,
  endLeases,
  HOOK,
  isStalled,
  type Scene,
  SEND,
  type Stored,
  stage,
  stallBefore,
  stored,
  unstall,
} from './provider.scene.ts'

const EMAIL = 'zebulon@quixote.example'
/** A moment at which the program is killed. */
interface Point {
  readonly name: string
  arrange(scene: Scene): void
  isReached(scene: Scene): boolean | Promise<boolean>
  /** What is stored at this moment, and what the vendor has: contacts, and starts of the automation. */
  readonly leaves: Omit<Stored, 'delivered'> & { readonly delivered?: number | undefined }
  readonly vendorHas: readonly [contacts: number, starts: number]
  /** Whether the visitor has been told. */
  readonly told: boolean
  /** It is killed at this moment twice, in `npm test`, too; at the others once, in .ci/run. */
  readonly twice?: true
}

const pending: Stored = { state: 'pending', event: 0, leased: 1, delivered: 0 }
const listed: Stored = { state: 'listed', event: 1, leased: 0, delivered: 0 }
const isHeld = (scene: Scene) => scene.held() > 0
/** The other destination has been told, and its outcome is stored. */
const isHeldAlone = (scene: Scene) => scene.held() > 0 && stored(scene, EMAIL)?.delivered === 1

const points: readonly Point[] = [
  {
    name: 'during create, before the effect',
    arrange: scene => scene.hold(CREATE, 'before the effect'),
    isReached: isHeld,
    leaves: pending,
    vendorHas: [0, 0],
    told: false,
  },
  {
    name: 'during create, after the effect',
    twice: true,
    arrange: scene => scene.hold(CREATE, 'after the effect'),
    isReached: isHeld,
    leaves: pending,
    vendorHas: [1, 0],
    told: false,
  },
  {
    name: 'after create, before confirm',
    arrange: scene => stallBefore('update of state on contact', scene),
    isReached: isStalled,
    leaves: pending,
    vendorHas: [1, 0],
    told: false,
  },
  {
    name: 'after confirm, before the deliveries are claimed',
    arrange: scene => stallBefore('update of token on delivery', scene),
    isReached: isStalled,
    leaves: listed,
    vendorHas: [1, 0],
    told: true,
  },
  {
    name: 'during the delivery to the automation, after the effect',
    arrange: scene => scene.hold(SEND, 'after the effect'),
    isReached: isHeldAlone,
    leaves: { ...listed, delivered: 1 },
    vendorHas: [1, 1],
    told: true,
  },
  {
    name: "after the automation's 2xx, before settle",
    twice: true,
    arrange: scene => stallBefore("update of state on delivery when old.destination = 'loops-automation'", scene),
    isReached: async scene => scene.asked(SEND).length > 0 && isStalled(scene),
    // The webhook may have been told before.
    leaves: { ...listed, delivered: undefined },
    vendorHas: [1, 1],
    told: true,
  },
]

const skip = !isSlow && 'it runs in .ci/run'

/** Everything is done, once, and the visitor who comes again is known. */
async function assertCompleted(scene: Scene): Promise<void> {
  const program = await scene.run()
  await completed(scene)
  assert.equal(contactsIn(scene.path).filter(({ email }) => email === EMAIL).length, 1)
  const again = await visit(program, EMAIL)
  assert.deepEqual([again?.status, again?.alreadyExisted, again?.automationTriggered], [200, true, false])
  assert.equal(await program.end('SIGTERM'), 0)
}

describe('killed', { concurrency: 2 }, () => {
  // The second time nobody is there who asks: it is the background that comes to the same moment.
  for (const { name, arrange, isReached, leaves, vendorHas, told, twice = false } of points) {
    test(`${twice ? 'twice' : 'once'} ${name}`, { skip: !twice && skip }, async t => {
      const scene = await stage(t)
      for (const time of twice ? [1, 2] : [1]) {
        arrange(scene)
        const program = await scene.run()
        const answer = time === 1 ? visit(program, EMAIL) : null
        await until(() => isReached(scene))
        if (told && answer !== null) assert.equal((await answer)?.alreadyExisted, false)
        assert.equal(await program.end('SIGKILL'), null)
        if (!told) assert.equal(await answer, null)

        const { delivered = stored(scene, EMAIL)?.delivered } = leaves
        assert.deepEqual(stored(scene, EMAIL), { ...leaves, delivered })
        assert.deepEqual([scene.fake.count(EMAIL), scene.fake.starts(EMAIL)], vendorHas)
        endLeases(scene)
        unstall(scene)
        scene.release()
      }
      await assertCompleted(scene)
      assertOnce(scene)
    })
  }
})

/** Within the 10 seconds that orchestrators wait before they kill. */
describe('SIGTERM ends it by itself, and what hangs is completed after a restart', {
  concurrency: true,
  skip,
}, () => {
  const SIGNUPS = 30
  for (const [path, effect, status] of [
    [CREATE, 'before the effect', 502],
    [CREATE, 'after the effect', 502],
    [HOOK, 'after the effect', 200],
    [SEND, 'after the effect', 200],
  ] as const) {
    test(`while ${path} hangs ${effect}`, async t => {
      const scene = await stage(t)
      scene.hold(path, effect)
      const program = await scene.run()
      const answers = Array.from({ length: SIGNUPS }, (_, i) => visit(program, `zebulon${i}@quixote.example`))
      await until(() => scene.held() > 0 && contactsIn(scene.path).length === SIGNUPS)
      if (status === 200) await Promise.all(answers)
      program.process.kill('SIGTERM')
      assert.equal(await exitInTime(program), 0)
      assert.ok(hasSaid(program, 'stopped'))
      for (const answer of await Promise.all(answers)) assert.equal(answer?.status, status)
      scene.release()
      const next = await scene.run()
      await completed(scene)
      assert.equal(contactsIn(scene.path).length, SIGNUPS)
      assertOnce(scene)
      assert.equal(await next.end('SIGTERM'), 0)
    })
  }
})
