import type { TestContext } from 'node:test'
import type { FaultProxy } from '../test/harness/fault-proxy.ts'
import type { Ledger } from '../test/harness/ledger.ts'
import type { Program, RunOptions } from '../test/harness/program.ts'
import type { Edit } from './build.ts'
import type { Need } from './needs.ts'
import type { Watch } from './watch.ts'

/** One way to hurt the service. Its name is that of its file in `scenarios/`, which exports it as `scenario`. */
export interface Scenario {
  /** What must hold however much it hurts, in one sentence. */
  readonly promise: string
  /** Without one of these it is skipped, with a line that says so. */
  readonly needs?: readonly Need[]
  /** Why it runs only where `--only` names it. */
  readonly byHand?: string
  /** Seconds without which it says nothing: with less it is skipped, unless `--only` names it. */
  readonly least?: number
  /** Its part of the time, beside that of the others; 1 if it does not say. */
  readonly weight?: number
  /** What it throws is a broken promise, too: the assertions of the tests' harness can be used as they are. */
  run(scene: Scene): Promise<Result>
}

/** What a scenario is given. Whatever takes a test's `after` or `diagnostic` takes a scene as well. */
export interface Scene extends Pick<TestContext, 'after' | 'diagnostic'> {
  /** How long it may take, cleaning up not counted. A scenario that takes two minutes more is ended, and has failed. */
  readonly seconds: number
  /** Whether that time is over, or such a part of it. To be asked before each cycle. */
  isOver(part?: number): boolean
  readonly seed: number
  /** From 0 to 1; the same for the same seed. */
  readonly random: () => number
  /** Empty at first, and gone afterwards. */
  readonly folder: string
  /** What the clients of this scenario were told. */
  readonly ledger: Ledger
  /**
   * Runs the service in the folder, on a free port of 127.0.0.1, and waits until it listens. It keeps its list in
   * `data/waitlist.db` unless `DATABASE_URL` says otherwise; nobody is refused by the rate limit. Killed at the end.
   */
  service(env?: Readonly<Record<string, string>>, options?: Partial<RunOptions>): Promise<Program>
  /** The program that is hurt, where it is not the one of this folder; `service` knows it. */
  readonly entry: string | undefined
  /** Makes a copy of the service with changes, for `service` to run (`entry`): one that breaks the promise on purpose. */
  changed(...edits: readonly Edit[]): string
  /** Stands before a server on 127.0.0.1, with faults that the seed chooses. Closed at the end. */
  proxy(port: number): Promise<FaultProxy>
  /** Samples what a process uses, until it ends or the scene does. */
  watch(pid: number): Watch
}

export interface Result {
  readonly figures: readonly Figure[]
  /** Each a sentence; none: the promise was held. */
  readonly broken?: readonly string[]
}

export interface Figure {
  readonly name: string
  readonly value: number
  /** Such as `MB` or `ms`; nothing for a plain count. */
  readonly unit?: string
  /** Shown as met or missed. A miss alone breaks nothing: machines differ. */
  readonly most?: number
  readonly least?: number
}
