/** The limits of the server. Times are in milliseconds, sizes in bytes. */

/** Both values with every character escaped are under 3 KiB; the rest is for white space and members that we ignore. */
export const BODY_LIMIT = 16 * 1024
/** How much of a refused body is read and dropped, so that its sender gets to the answer. */
export const DRAIN_LIMIT = 1024 * 1024

export const HEADERS_TIMEOUT = 10_000
export const REQUEST_TIMEOUT = 15_000
/** How often Node checks both. Its default of 30 s would enforce them late. */
export const TIMEOUT_CHECK = 2_000
/** Longer than a load balancer's (usually 60 s), so that we never close a connection that it is about to use. */
export const KEEP_ALIVE_TIMEOUT = 75_000
/** A connection on which nothing moves while a request is in progress, such as one whose client does not read. */
export const IDLE_TIMEOUT = 30_000
/** How long the sender of a malformed request may read the refusal. */
export const LINGER = 1_000
export const TLS_HANDSHAKE_TIMEOUT = 10_000

export const HEADER_BYTES = 8_192
export const HEADER_COUNT = 64
export const CONNECTIONS = 10_000
/** Sixteen clients are needed to take all. */
export const CONNECTIONS_OF_CLIENT = CONNECTIONS / 16
/** Requests in progress on one connection: browsers send one at a time. */
export const PIPELINED = 8

/** Challenges that are being made at once, in the whole process; each takes some milliseconds of a core. */
export const MAX_CONCURRENT_CHALLENGES = 64
