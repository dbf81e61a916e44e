import { discoveryDocuments } from '../discovery/documents.ts'
import { formDocuments } from '../form/documents.ts'
import { connectionClient } from './client-address.ts'
import { boundConnections, type NodeServer } from './connections.ts'
import type { HttpParts, HttpSettings } from './context.ts'
import * as limits from './limits.ts'
import { listen, originOf, portOf } from './listen.ts'
import { createListener, useCertificate } from './listener.ts'
import { readMessages } from './messages/file.ts'
import { languagesOf, untranslated } from './messages/languages.ts'
import { createRouter } from './router.ts'
import { firstCertificate, watchCertificate } from './tls.ts'

/** The public server, listening. */
export interface HttpServer {
  /** The public origin, used in all links. */
  readonly baseUrl: string
  /** Where it listens; differs from `baseUrl` behind a proxy. */
  readonly origin: string
  /** Reads the certificate files again now. They are also watched. */
  reloadCertificate(): void
  /** Health turns to 503, then listening ends, then accepted requests are answered. Takes at most 7 s. */
  close(): Promise<void>
}

/**
 * Starts to listen. Requests are answered from then on.
 *
 * @throws {OperatorError} when the address, the certificate or the messages cannot be used.
 */
export async function openServer(settings: HttpSettings, parts: HttpParts): Promise<HttpServer> {
  const { host, port, tls, proxies, messagesFile } = settings
  const { log } = parts
  const certificate = tls && firstCertificate(tls)
  const languages = messagesFile === null ? untranslated : languagesOf(readMessages(messagesFile))
  const servers: NodeServer[] = []
  let isDraining = false

  const origin = () => originOf(host, portOf(servers[0]!), certificate !== null)
  const baseUrl = () => settings.baseUrl ?? origin()
  // Made by the first request, or below: the port may be known only once the server listens.
  let made: ReturnType<typeof discoveryDocuments> | undefined
  const issuesChallenges = parts.challenge?.issue != null
  const documents = () => (made ??= discoveryDocuments({ ...settings, ...parts, base: baseUrl(), issuesChallenges }))
  const form = formDocuments({ ...parts, languages })

  const route = createRouter(settings, { ...parts, documents, form, languages, isDraining: () => isDraining })
  const connections = boundConnections({
    all: limits.CONNECTIONS,
    share: limits.CONNECTIONS_OF_CLIENT,
    clientOf: connectionClient(proxies),
    log,
  })
  const create = () => {
    const server = createListener(route, certificate)
    connections.add(server)
    return server
  }
  await listen({ host, port, settings: { host: 'HOST', port: 'PORT' } }, create, servers)
  documents()

  const watch =
    tls &&
    certificate &&
    watchCertificate(tls, certificate, {
      use(pair) {
        for (const server of servers) useCertificate(server, pair)
        log.info('the TLS certificate was reloaded')
      },
      reject: ({ message: why }) => log.warn({ why }, 'the new TLS certificate cannot be used; the old one stays'),
      warn: sentence => log.warn(sentence),
    })

  return {
    baseUrl: baseUrl(),
    origin: origin(),
    reloadCertificate: () => watch?.reload(),
    async close() {
      watch?.stop()
      isDraining = true
      await connections.close(settings.shutdownDelay)
    },
  }
}
