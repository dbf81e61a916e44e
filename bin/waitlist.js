#!/usr/bin/env node
// Plain JavaScript, so that the compile cache is on before the first TypeScript file is read: stripping the types of
// every file anew costs a start 40 ms and 15 MB. Node strips no types below node_modules, so there the package's
// compiled files run instead.
import { enableCompileCache, flushCompileCache } from 'node:module'

enableCompileCache()
await import(import.meta.url.includes('/node_modules/') ? '../dist/main.js' : '../src/main.ts')
// Written now, not at the exit: a process may be killed.
flushCompileCache()
