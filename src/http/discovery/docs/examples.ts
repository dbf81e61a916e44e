import type { Sample } from './commonmark.ts'
import { type Call, firstMedia } from './shape.ts'

/** Examples that run unchanged: the tests copy them from the page and run them. */

interface Request {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: object | undefined
  /** Whether the answer is JSON. */
  readonly json: boolean
  /** Whether the answer sets a cookie. */
  readonly cookie: boolean
}

export function requestSamples(base: string, { method, path, operation }: Call): Sample[] {
  const { requestBody, responses } = operation
  const sent = firstMedia(requestBody?.content)
  const [form = '', ...otherForms] = Object.keys(responses[200]?.content ?? {})
  // If there are several forms, the example shows how to get one that is not the default.
  const accept = otherForms.at(-1)
  const headers: Record<string, string> = {}
  if (sent !== undefined) headers['Content-Type'] = sent.type
  if (accept !== undefined) headers.Accept = accept
  const request: Request = {
    url: base + path,
    method,
    headers,
    body: Object.values(sent?.media.examples ?? {})[0]?.value as object | undefined,
    json: (accept ?? form).includes('json'),
    cookie: responses[200]?.headers?.['Set-Cookie'] !== undefined,
  }
  return [
    { language: 'sh', code: curl(request) },
    { language: 'js', code: javascript(request) },
    { language: 'python', code: python(request) },
  ]
}

function curl({ url, headers, body }: Request): string {
  // The brackets of an IPv6 address are special to shells.
  const words = [`curl ${/[[\]]/.test(url) ? shellText(url) : url}`]
  for (const [name, value] of Object.entries(headers)) words.push(`-H ${shellText(`${name}: ${value}`)}`)
  if (body !== undefined) words.push(`-d ${shellText(spaced(body))}`)
  return words.join(' \\\n  ')
}

function javascript({ url, method, headers, body, json, cookie }: Request): string {
  const options: string[] = []
  if (method !== 'GET') options.push(`method: ${scriptText(method)},`)
  if (Object.keys(headers).length > 0) options.push(`headers: ${scriptObject(headers)},`)
  if (cookie) options.push(`credentials: 'include', // keeps the cookie when the page is on another origin`)
  if (body !== undefined) options.push(`body: JSON.stringify(${scriptObject(body)}),`)
  const block = options.length === 0 ? '' : `, {\n  ${options.join('\n  ')}\n}`
  return `const response = await fetch(${scriptText(url)}${block})
console.log(response.status, await response.${json ? 'json' : 'text'}())`
}

function python({ url, method, headers, body, json }: Request): string {
  const read = (from: string) => (json ? `json.load(${from})` : `${from}.read().decode()`)
  const sent =
    body === undefined ? [] : [`method=${JSON.stringify(method)}`, `data=json.dumps(${spaced(body)}).encode()`]
  const parts = [JSON.stringify(url), sent[0], `headers=${spaced(headers)}`, sent[1]].filter(each => each !== undefined)
  const isPlain = body === undefined && Object.keys(headers).length === 0
  const request = isPlain ? '' : `request = Request(\n${parts.map(each => `    ${each},\n`).join('')})\n`
  const call = `with urlopen(${isPlain ? parts[0] : 'request'}) as response:
    print(response.status, ${read('response')})`
  const imports = `${json ? 'import json\n' : ''}${body ? 'from urllib.error import HTTPError\n' : ''}from urllib.request import ${isPlain ? '' : 'Request, '}urlopen\n\n`
  if (body === undefined) return imports + request + call
  return `${imports}${request}try:
${call.replaceAll(/^/gm, '    ')}
except HTTPError as refusal:
    print(refusal.status, ${read('refusal')})`
}

/** JSON with a space after each colon and comma, as people write it. With nothing but strings, it is Python too. */
const spaced = (value: object): string =>
  `{${Object.entries(value)
    .map(each => each.map(part => JSON.stringify(part)).join(': '))
    .join(', ')}}`

const shellText = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

const scriptText = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`

const scriptObject = (value: object): string =>
  `{ ${Object.entries(value)
    .map(([name, member]) => `${/^\w+$/.test(name) ? name : scriptText(name)}: ${scriptText(String(member))}`)
    .join(', ')} }`
