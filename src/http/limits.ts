/** The limits of the server. Times are in milliseconds, sizes in bytes. */

/** Both values with every character escaped are under 3 KiB; the rest is for white space and members that we ignore. */
export const BODY_LIMIT = 16 * 1024

/** Slow senders are cut off. */
export const HEADERS_TIMEOUT = 10_000
export const REQUEST_TIMEOUT = 15_000
/** How often Node checks both. Its default of 30 s would enforce them late. */
export const TIMEOUT_CHECK = 2_000
/** Longer than a load balancer's (usually 60 s), so that we never close a connection that it is about to use. */
export const KEEP_ALIVE_TIMEOUT = 75_000
/** A client that does not read its answer is cut off. Longer than a signup may wait for its answer. */
export const STALL_TIMEOUT = 90_000
export const TLS_HANDSHAKE_TIMEOUT = 10_000

export const HEADER_BYTES = 8_192
export const HEADER_COUNT = 64
export const CONNECTIONS = 10_000
/** Enough for all who share one IPv4 address, since those that are idle make room. Sixteen clients are needed to take all. */
export const CONNECTIONS_OF_CLIENT = CONNECTIONS / 16
/** Requests that may wait for their answers on one HTTP/1 connection. */
export const PIPELINED = 64
/** HTTP/2 (RFC 9113 §6.5.2), for each connection. */
export const STREAMS = 100
/** Memory of one HTTP/2 connection, in megabytes. */
export const SESSION_MEMORY = 4

/** How long the result of a health check is used, and how long a check may take. */
export const HEALTH_FRESH = 1_000
export const HEALTH_TIMEOUT = 1_000
