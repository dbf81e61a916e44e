import type { IncomingMessage } from 'node:http'
import type { Logger } from 'pino'
import type { Telemetry } from '../app/telemetry.ts'
import type { Challenge } from '../challenges/index.ts'
import type { LinkActions } from '../confirm/routes.ts'
import type { HoldRules } from '../holds/rules.ts'
import type { Languages } from '../messages/languages.ts'
import type { Limiter } from '../rate-limit/memory.ts'
import type { Signup } from '../signup/contact.ts'
import type { CookieSettings } from '../signup/cookie.ts'
import type { Joined } from '../signup/join.ts'
import type { Store } from '../store/store.ts'
import type { TrustedProxies } from './client-address.ts'
import type { Answer, Headers } from './response.ts'
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

/** The parts of the running service that routes work with. */
export interface Parts {
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
  /** Those of the form and of pages for people. */
  readonly languages: Languages
  /** Whether the domain of an address is accepted; null: every one is. */
  readonly accepts: ((email: string) => boolean) | null
  /** Aborted when a stop can no longer wait for what a request asks elsewhere. */
  readonly signal: AbortSignal
  readonly log: Logger
  /** Null: nothing is counted and measured. */
  readonly telemetry: Telemetry | null
}

/** What every route is made from. */
export interface Context extends Parts {
  readonly settings: HttpSettings
  /** The public origin, without a slash at the end. */
  readonly baseUrl: string
  /** The address of the client behind a request. */
  addressOf(request: IncomingMessage): string
  /** The CORS headers of every answer to a landing page. */
  corsHeaders(request: IncomingMessage): Headers
  /** Logs an outage of the store or a bug. Returns the answer to it. */
  failed(error: unknown, reqId: number): Answer
  isDraining(): boolean
}
