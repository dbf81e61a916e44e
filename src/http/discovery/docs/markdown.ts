import { paths } from '../../paths.ts'
import type { OpenapiDocument } from '../openapi.ts'
import { blocks, code, escaped, example, idOf, prose } from './commonmark.ts'
import { basics, start } from './guide.ts'
import { endpoint } from './reference.ts'
import { callsOf } from './shape.ts'

/** The documentation as CommonMark (RFC 7763), made from the OpenAPI document. `page.ts` turns it into a page. */
export function docsMarkdown(api: OpenapiDocument, base: string): string {
  const { info, tags } = api
  const calls = callsOf(api)
  const endpoints = calls.map(
    ({ method, path, operation: { summary } }) =>
      `- [${code(`${method} ${path}`)} ${escaped(summary)}](#${idOf(summary)})`,
  )
  const document = blocks(
    `# ${escaped(info.title)}`,
    prose(info.summary),
    prose(info.description),
    example('Base URL', { language: 'http', code: base }),
    '**Endpoints**',
    endpoints.join('\n'),
    start(api, base),
    basics(api, base),
    ...tags.map(({ name, description }) =>
      blocks(
        `## ${escaped(name)}`,
        prose(description),
        ...calls.filter(({ operation }) => operation.tags.includes(name)).map(call => endpoint(api, base, call)),
      ),
    ),
    '---',
    `Version ${code(info.version)}, ${escaped(info.license.name)} licence. Generated from the [OpenAPI document](${base}${paths.openapi}) of this service.`,
  )
  return `${document}\n`
}
