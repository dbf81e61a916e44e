import type { Challenge } from '../waitlist/ports/challenge.ts'
import type { Log } from '../waitlist/ports/log.ts'
import { altcha } from './altcha.ts'
import type { ChallengeChoice } from './settings.ts'

export interface ChallengeParts {
  /** A random value that all instances share. */
  secret(name: string): Promise<string>
  /** Hosts on which a challenge may have been solved: those of the landing pages and of the service. */
  readonly hosts: readonly string[]
  readonly log: Log
}

export async function openChallenge(choice: ChallengeChoice, parts: ChallengeParts): Promise<Challenge> {
  if (choice.kind === 'altcha') {
    return altcha({ ...choice, secret: choice.secret ?? (await parts.secret('challenge')) })
  }
  const { siteverify } = await import('./siteverify.ts')
  return siteverify(choice, parts)
}
