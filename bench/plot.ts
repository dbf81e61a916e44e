/**
 * Makes the plots and the tables of docs/scaling.md from the raw figures of a run:
 *
 *     npm run bench -- --instances --json docs/figures/instances.json && node bench/plot.ts
 *
 *   --json <file>    other raw figures
 *   --into <folder>  where the plots go; the document is then left alone
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { plots } from './plots.ts'
import { readRaw } from './raw.ts'
import { renewed } from './scaling-tables.ts'

const docs = fileURLToPath(new URL('../docs', import.meta.url))
const { values: options } = parseArgs({ options: { json: { type: 'string' }, into: { type: 'string' } } })
const raw = readRaw(readFileSync(options.json ?? join(docs, 'figures', 'instances.json'), 'utf8'))

for (const [name, svg] of Object.entries(plots(raw)))
  writeFileSync(join(options.into ?? join(docs, 'figures'), name), svg)
if (options.into === undefined) {
  const document = join(docs, 'scaling.md')
  writeFileSync(document, renewed(readFileSync(document, 'utf8'), raw))
}
