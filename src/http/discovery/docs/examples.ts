import type { Sample } from './content.ts'
import { type Call, firstMedia, type Schema } from './shape.ts'

/** Programs that can be run as they stand. The tests take them out of the page and run them. */

interface Request {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: object
  /** Whether the answer is JSON. */
  readonly json: boolean
  /** Whether the answer sets a cookie. */
  readonly cookie: boolean
}

export function requestSamples(base: string, { method, path, operation }: Call): Sample[] {
  const { requestBody, responses } = operation
  const [type, media] = firstMedia(requestBody?.content) ?? []
  const [example] = Object.values(media?.examples ?? {})
  // Where there is a choice of forms, the example shows how to get the one that is not the default.
  const [form, ...otherForms] = Object.keys(responses[200]?.content ?? {})
  const accept = otherForms.at(-1)
  const request: Request = {
    url: base + path,
    method,
    headers: {
      ...(type === undefined ? {} : { 'Content-Type': type }),
      ...(accept === undefined ? {} : { Accept: accept }),
    },
    ...(example === undefined ? {} : { body: example.value as object }),
    json: (accept ?? form ?? '').includes('json'),
    cookie: responses[200]?.headers?.['Set-Cookie'] !== undefined,
  }
  return [
    { title: 'curl', language: 'sh', code: curl(request) },
    { title: 'JavaScript', language: 'js', code: javascript(request) },
    { title: 'Python', language: 'python', code: python(request) },
  ]
}

function curl({ url, headers, body }: Request): string {
  return [
    // Brackets of an IPv6 address mean something to shells.
    `curl ${/[[\]]/.test(url) ? shellText(url) : url}`,
    ...Object.entries(headers).map(([name, value]) => `  -H ${shellText(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`  -d ${shellText(spaced(body))}`]),
  ].join(' \\\n')
}

function javascript({ url, method, headers, body, json, cookie }: Request): string {
  const options = [
    ...(method === 'GET' ? [] : [`method: ${scriptText(method)},`]),
    ...(Object.keys(headers).length === 0 ? [] : [`headers: ${scriptObject(headers)},`]),
    ...(cookie ? [`credentials: 'include', // keeps the cookie when the page is on another origin`] : []),
    ...(body === undefined ? [] : [`body: JSON.stringify(${scriptObject(body)}),`]),
  ]
  const lines = options.map(option => `  ${option}\n`).join('')
  return [
    `const response = await fetch(${scriptText(url)}${options.length === 0 ? '' : `, {\n${lines}}`})`,
    `console.log(response.status, await response.${json ? 'json' : 'text'}())`,
  ].join('\n')
}

function python({ url, method, headers, body, json }: Request): string {
  const read = (from: string) => (json ? `json.load(${from})` : `${from}.read().decode()`)
  const plain = method === 'GET' && Object.keys(headers).length === 0
  const target = plain ? JSON.stringify(url) : 'request'
  return [
    ...(json || body !== undefined ? ['import json'] : []),
    ...(body === undefined ? [] : ['from urllib.error import HTTPError']),
    `from urllib.request import ${plain ? '' : 'Request, '}urlopen`,
    '',
    ...(plain
      ? []
      : [
          'request = Request(',
          `    ${JSON.stringify(url)},`,
          ...(method === 'GET' ? [] : [`    method=${JSON.stringify(method)},`]),
          `    headers=${spaced(headers)},`,
          ...(body === undefined ? [] : [`    data=json.dumps(${spaced(body)}).encode(),`]),
          ')',
        ]),
    ...(body === undefined
      ? [`with urlopen(${target}) as response:`, `    print(response.status, ${read('response')})`]
      : [
          'try:',
          `    with urlopen(${target}) as response:`,
          `        print(response.status, ${read('response')})`,
          'except HTTPError as refusal:',
          `    print(refusal.status, ${read('refusal')})`,
        ]),
  ].join('\n')
}

/** A form to paste into a page: one input for each field of the request. */
export function formSample(url: string, schema: Schema): Sample {
  const inputs = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const type = field['x-after-trimming']?.format === 'email' ? ' type="email"' : ''
    const required = schema.required?.includes(name) ? ' required' : ''
    const label = name[0]?.toUpperCase() + name.slice(1)
    return `  <label>\n    ${label}\n    <input name="${name}"${type} autocomplete="${name}"${required}>\n  </label>`
  })
  const code = `<form id="waitlist">
${inputs.join('\n')}
  <button>Join the waitlist</button>
  <p role="status"></p>
</form>

<script type="module">
  const form = document.querySelector('#waitlist')
  const status = form.querySelector('[role=status]')
  const service = ${scriptText(url)}

  form.addEventListener('submit', async event => {
    event.preventDefault()
    status.textContent = 'One moment …'
    try {
      const signup = Object.fromEntries(new FormData(form))
      const response = await fetch(service, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        credentials: 'include',
        body: JSON.stringify(signup),
      })
      const { message, error } = await response.json()
      status.textContent = response.ok ? message : error
      if (response.ok) form.reset()
    } catch {
      status.textContent = 'That did not work. Please try again.'
    }
  })
</script>`
  return { title: 'HTML', language: 'html', code }
}

/** JSON with a space after each colon and comma, as people write it. Of strings alone it is Python too. */
const spaced = (value: object): string =>
  `{${Object.entries(value)
    .map(([name, member]) => `${JSON.stringify(name)}: ${JSON.stringify(member)}`)
    .join(', ')}}`

const shellText = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

const scriptText = (text: string): string =>
  `'${JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`

const scriptObject = (value: object): string =>
  `{ ${Object.entries(value)
    .map(([name, member]) => `${/^\w+$/.test(name) ? name : scriptText(name)}: ${scriptText(String(member))}`)
    .join(', ')} }`
