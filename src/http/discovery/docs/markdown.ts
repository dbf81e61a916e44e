import type { Widget } from '../../../waitlist/ports/challenge.ts'
import { paths } from '../../paths.ts'
import type { OpenapiDocument } from '../openapi.ts'
import { blocks, code, escaped, example, idOf, prose } from './commonmark.ts'
import { basics, start } from './guide.ts'
import { endpoint } from './reference.ts'
import { callsOf } from './shape.ts'

/** The documentation as CommonMark (RFC 7763), made from the OpenAPI document. Each call says all there is to say of it. */
export const docsMarkdown = (api: OpenapiDocument, base: string, widget: Widget | null): string =>
  `${blocks(everything(api, base, widget), '---', colophon(api, base))}\n`

/** The same without what stands at the end. */
export function everything(api: OpenapiDocument, base: string, widget: Widget | null): string {
  const calls = callsOf(api)
  return blocks(
    introduction(api, base),
    start(api, base, widget),
    basics(api, base),
    ...api.tags.map(({ name, description }) =>
      blocks(
        `## ${escaped(name)}`,
        prose(description),
        ...calls.filter(({ operation }) => operation.tags.includes(name)).map(call => endpoint(api, base, call)),
      ),
    ),
  )
}

/** What it is, where it is, and its calls. */
function introduction(api: OpenapiDocument, base: string): string {
  const { title, description } = api.info
  const endpoints = callsOf(api).map(
    ({ method, path, operation: { summary } }) =>
      `- [${code(`${method} ${path}`)} ${escaped(summary)}](#${idOf(summary)})`,
  )
  return blocks(
    `# ${escaped(title)}`,
    prose(description),
    example('Base URL', { language: 'http', code: base }),
    '**Endpoints**',
    endpoints.join('\n'),
  )
}

export const colophon = ({ info }: OpenapiDocument, base: string): string =>
  `Version ${code(info.version)}, ${escaped(info.license.name)} licence. Generated from the [OpenAPI document](${base}${paths.openapi}) of this service.`
