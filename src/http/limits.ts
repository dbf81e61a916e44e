/** The bounds of the server. Times are in milliseconds, sizes in bytes. */

/** Two values, escaped to the utmost, are under 3 KiB; the rest is room for padding. */
export const BODY_LIMIT = 16 * 1024

/** Slow senders are cut. */
export const HEADERS_TIMEOUT = 10_000
export const REQUEST_TIMEOUT = 15_000
/** How often Node looks for them; its default of 30 s would make both limits late. */
export const TIMEOUT_CHECK = 2_000
/** Longer than a load balancer keeps an idle connection (usually 60 s), so that we never close one that it just chose. */
export const KEEP_ALIVE_TIMEOUT = 75_000
/** A client that takes nothing of its answer is cut; longer than a signup may wait for the store. */
export const STALL_TIMEOUT = 90_000
export const TLS_HANDSHAKE_TIMEOUT = 10_000

export const HEADER_BYTES = 8_192
export const HEADER_COUNT = 64
export const CONNECTIONS = 10_000
/** Requests of one HTTP/1 connection that may wait for their answers. */
export const PIPELINED = 64
/** HTTP/2 (RFC 9113 §6.5.2), for each connection. */
export const STREAMS = 100
/** Memory of one HTTP/2 connection, in megabytes. */
export const SESSION_MEMORY = 4

/** How long the answer to one health check is good for, and how long a check may take. */
export const HEALTH_FRESH = 1_000
export const HEALTH_TIMEOUT = 1_000
