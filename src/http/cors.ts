import type { FastifyReply, FastifyRequest } from 'fastify'

/**
 * Credentialed CORS for the landing pages (Fetch standard, "CORS protocol and credentials"): the exact origin is
 * repeated, never `*`. Another origin gets no CORS field; the request itself is not refused, since a browser does that.
 */
export interface Cors {
  /** Sets the fields of an answer to POST, whatever its status: without them a page sees a network error only. */
  answer(request: FastifyRequest, reply: FastifyReply): void
  /** Adds the fields of a preflight answer, when the request is a preflight. */
  preflight(request: FastifyRequest, reply: FastifyReply): void
}

/** Chromium's cap; Firefox allows more, WebKit less. */
const PREFLIGHT_MAX_AGE = '7200'

/** `origins`: scheme, host and port as browsers send them, without a slash at the end. */
export function cors(origins: readonly string[]): Cors {
  const allowed = new Set(origins)
  const allow = (origin: string) => ({
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
  })
  return {
    answer(request, reply) {
      reply.header('vary', 'Origin')
      const { origin } = request.headers
      if (origin === undefined || !allowed.has(origin)) return
      reply.headers({ ...allow(origin), 'access-control-expose-headers': 'Retry-After, RateLimit, RateLimit-Policy' })
    },

    preflight(request, reply) {
      reply.header('vary', 'Origin, Access-Control-Request-Method, Access-Control-Request-Headers')
      const { origin } = request.headers
      if (origin === undefined || !allowed.has(origin)) return
      if (request.headers['access-control-request-method'] === undefined) return
      reply.headers({
        ...allow(origin),
        'access-control-allow-methods': 'GET, HEAD, POST',
        'access-control-allow-headers': 'Content-Type',
        'access-control-max-age': PREFLIGHT_MAX_AGE,
      })
    },
  }
}
