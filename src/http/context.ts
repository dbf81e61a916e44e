import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { Telemetry } from '../app/telemetry.ts'
import type { Challenge } from '../challenges/index.ts'
import type { LinkActions } from '../confirm/routes.ts'
import type { HoldRules } from '../holds/rules.ts'
import type { Limiter } from '../rate-limit/memory.ts'
import type { Signup } from '../signup/contact.ts'
import type { CookieSettings } from '../signup/cookie.ts'
import type { Joined } from '../signup/join.ts'
import type { Store } from '../store/store.ts'
import type { TrustedProxies } from './client-address.ts'
import type { FieldList } from './response.ts'
import type { CertificateFiles } from './tls.ts'

/** The settings of the public server. They are handed down whole, and each part picks what it reads. */
export interface HttpSettings {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The public origin, without a slash at the end; null: derived from host and port. */
  readonly baseUrl: string | null
  readonly tls: CertificateFiles | null
  readonly proxies: TrustedProxies
  /** Attempts, and the seconds in which all of them are refilled. */
  readonly quota: { readonly limit: number; readonly window: number }
  readonly corsOrigins: readonly string[]
  readonly cookie: CookieSettings
  /** Whether the query of a signup says where it came from. If not, it is ignored. */
  readonly trackSources: boolean
  /** Whether an answer says if the address was on the list before. */
  readonly disclosesMembership: boolean
  /** Null: no signup is held. */
  readonly holds: HoldRules | null
  /** Whether a new contact must confirm its address by mail. */
  readonly confirm: boolean
  /** Sentences in other languages; null: every visitor reads English. */
  readonly messagesFile: string | null
  readonly service: string
  readonly description: string
  /** Milliseconds between the first 503 of the health report and the end of listening, for load balancers to notice. */
  readonly shutdownDelay: number
}

/** What the router tells its routes of a request. */
export interface RouteParts {
  /** The key under which a client's attempts are counted. */
  clientOf(request: IncomingMessage): string
  /** The CORS fields of every answer. */
  corsFields(request: IncomingMessage): FieldList
}

/** What the public server is connected to. */
export interface HttpParts {
  /** Of this program. */
  readonly version: string
  /** For the health report, and to refuse signups that would wait too long. */
  readonly store: Pick<Store, 'check' | 'isBehind' | 'secret'>
  join(signup: Signup): Promise<Joined>
  /** Counts signups. */
  readonly limiter: Limiter
  /** Counts challenges that are fetched. */
  readonly challengeLimiter: Limiter
  /** Null: no proof is asked for. */
  readonly challenge: Challenge | null
  readonly links: LinkActions
  /** Whether the domain of an address is accepted; null: every one is. */
  readonly accepts: ((email: string) => boolean) | null
  /** Aborted when a stop can no longer wait for what a request asks elsewhere. */
  readonly signal: AbortSignal
  readonly log: Logger
  /** Null: nothing is counted and measured. */
  readonly telemetry: Telemetry | null
}
