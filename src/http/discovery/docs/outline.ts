import type { OpenapiDocument } from '../openapi.ts'
import { answerCards, furtherFields, rawAnswer, refusalRow } from './answers.ts'
import { type Block, idOf, type Outline, type Row, type Section } from './content.ts'
import { requestSamples } from './examples.ts'
import { basics, start } from './guide.ts'
import { fieldRows, memberRows } from './members.ts'
import { type Answer, type Call, callsOf, firstMedia } from './shape.ts'

export function outline(api: OpenapiDocument, base: string): Outline {
  const { info, tags } = api
  const calls = callsOf(api)
  const endpoints = calls.map(({ method, path, operation: { summary } }) => ({
    id: idOf(summary),
    method,
    path,
    title: summary,
  }))
  return {
    title: info.title,
    name: info.contact.name,
    version: info.version,
    license: info.license.name,
    summary: info.summary,
    introduction: {
      id: 'introduction',
      title: info.title,
      parts: [
        {
          text: [
            { is: 'prose', text: info.description },
            { is: 'code', title: 'Base URL', samples: [{ title: 'Base URL', language: 'http', code: base }] },
          ],
          beside: [{ is: 'calls', title: 'Endpoints', calls: endpoints }],
        },
      ],
    },
    groups: [
      start(api, base),
      basics(api, base),
      ...tags.map(({ name, description }) => ({
        id: idOf(name),
        title: name,
        text: description,
        sections: calls
          .filter(({ operation }) => operation.tags.includes(name))
          .map(call => reference(api, base, call)),
      })),
    ],
  }
}

/** One endpoint: what is sent, what comes back, what can go wrong. */
function reference(api: OpenapiDocument, base: string, call: Call): Section {
  const { summary, description, requestBody, responses } = call.operation
  const { 200: success, ...others } = responses
  // `4XX` comes after the 4xx that are told apart.
  const refusals = Object.entries(others).sort(([one], [other]) => (one < other ? -1 : 1))
  const refused = refusals.find(([status]) => status.startsWith('4'))
  const [, body] = firstMedia(requestBody?.content) ?? []
  const [, media] = firstMedia(success?.content) ?? []
  return {
    id: idOf(summary),
    title: summary,
    call: { method: call.method, path: call.path },
    parts: [
      {
        text: [
          { is: 'prose', text: description },
          ...(body === undefined || requestBody === undefined
            ? []
            : rows('Request fields', memberRows(api, body.schema, 'required'), requestBody.description)),
        ],
        beside: [{ is: 'code', title: 'Request', samples: requestSamples(base, call) }],
      },
      {
        text: [
          ...(success === undefined ? [] : [successText(success)]),
          ...(media === undefined ? [] : rows('Response fields', memberRows(api, media.schema, 'always'))),
          ...rows('Response headers', fieldRows(success?.headers)),
        ],
        beside: success === undefined ? [] : answerCards('200', success),
      },
      {
        text: [
          { is: 'refusals', title: 'Other responses', refusals: refusals.map(refusalRow) },
          ...rows('Headers of other responses', furtherFields(others, success)),
        ],
        beside: refused === undefined || body === undefined ? [] : [rawAnswer(...refused)],
      },
    ],
  }
}

const rows = (title: string, rows: readonly Row[], text?: string): Block[] =>
  rows.length === 0
    ? []
    : [{ is: 'rows', title, rows }, ...(text === undefined ? [] : [{ is: 'prose', text } as const])]

function successText({ description, content }: Answer): Block {
  const types = Object.keys(content ?? {}).map(type => `\`${type}\``)
  return { is: 'prose', text: `Success is \`200\` with ${types.join(' or ')}. ${description}` }
}
