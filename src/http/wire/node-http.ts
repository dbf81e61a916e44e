/**
 * Node's HTTP server. An import statement reads every name that `node:http` exports, and reading one of them loads the
 * client behind `fetch`, which costs time at start and memory.
 */
export const { createServer, STATUS_CODES } = process.getBuiltinModule('node:http')
