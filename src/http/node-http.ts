/**
 * Node's server for HTTP/1. An import statement reads every name that `node:http` exports, and to read one of them is to
 * load the client behind `fetch`, which would take part of the start and of the memory for nothing.
 */
export const { createServer, METHODS, STATUS_CODES } = process.getBuiltinModule('node:http')
