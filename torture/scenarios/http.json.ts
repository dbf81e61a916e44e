import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import { Agent, request } from 'undici'
import type { Ledger } from '../../test/harness/ledger.ts'
import { contactsAt } from '../checker.ts'
import { printable } from '../printable.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { type Found, listIn, underAttack } from '../under-attack.ts'

/** Requests at a time. */
const CLIENTS = 16
const LIMIT = 16_384

export const scenario: Scenario = {
  promise:
    'Whatever bytes a signup consists of, it is taken exactly if the published schema takes it, and stored as it was sent; it is never a 500.',
  async run(scene) {
    const program = await scene.service()
    return underAttack(scene, program, { memory: 100 }, () => abuse(scene, program.baseUrl))
  },
}

async function abuse(scene: Scene, baseUrl: string): Promise<Found> {
  const document = (await (await fetch(`${baseUrl}/api/openapi.json`)).json()) as OpenApi
  const ajv = addFormats.default(new Ajv2020({ strict: false }))
  ajv.addSchema({ ...document, $id: 'api' })
  const takes = ajv.getSchema('api#/paths/~1api~1waitlist/post/requestBody/content/application~1json/schema')!
  const agent = new Agent({ connections: CLIENTS })
  const names = new Map<string, string>()
  const judge = {
    takes: (value: unknown) => takes(value) === true,
    ledger: scene.ledger,
    url: `${baseUrl}/api/waitlist`,
    agent,
    names,
  }

  const wrongs: string[] = []
  let sent = 0
  const ask = async (bytes: Uint8Array) => {
    sent++
    const wrong = await whatIsWrong(judge, bytes)
    if (wrong !== null && wrongs.length < 50) wrongs.push(`${shown(bytes)}: ${wrong}`)
  }
  const known = corpus()
  for (let i = 0; i < known.length; i += CLIENTS) await Promise.all(known.slice(i, i + CLIENTS).map(ask))
  // Drawn in rounds, so that a round can be repeated by its seed.
  for (let round = 0; !scene.isOver(0.8); round++) {
    const drawn = fc.sample(bodies, { seed: scene.seed + round, numRuns: CLIENTS * 16 })
    for (let i = 0; i < drawn.length; i += CLIENTS) await Promise.all(drawn.slice(i, i + CLIENTS).map(ask))
  }
  await agent.destroy()
  for (const { name, email } of await contactsAt(listIn(scene.folder))) {
    const told = names.get(email)
    if (told !== undefined && told !== name) wrongs.push(`${JSON.stringify(told)} is stored as ${JSON.stringify(name)}`)
  }
  const figures = [
    { name: 'bodies', value: sent },
    { name: 'of them signups', value: names.size },
  ]
  return { figures, broken: wrongs }
}

interface OpenApi {
  readonly paths: object
}

interface Judge {
  takes(value: unknown): boolean
  readonly ledger: Ledger
  readonly url: string
  readonly agent: Agent
  /** Of everybody who was told that they are new, by address. */
  readonly names: Map<string, string>
}

async function whatIsWrong({ takes, ledger, url, agent, names }: Judge, bytes: Uint8Array): Promise<string | null> {
  const value = parsed(bytes)
  const isSignup = bytes.length <= LIMIT && value !== undefined && takes(value) && isWellFormed(value)
  const signup = isSignup ? (value as { name: string; email: string }) : null
  const email = signup?.email.trim()
  if (email !== undefined) ledger.note(email, null)
  const asked = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(bytes),
    dispatcher: agent,
  } as const
  const answer = await request(url, asked).catch((error: Error) => error)
  if (answer instanceof Error) return `no answer: ${answer.message}`
  const status = answer.statusCode
  const json = (await answer.body.json()) as { error?: unknown; alreadyExisted?: boolean }
  if (signup !== null && email !== undefined) {
    if (status !== 200) return `answered ${status}, although the schema takes it: ${JSON.stringify(json)}`
    ledger.note(email, { status, alreadyExisted: json.alreadyExisted! })
    if (!json.alreadyExisted) names.set(email, signup.name.trim())
    return null
  }
  const expected = bytes.length > LIMIT ? 413 : 400
  if (status !== expected) return `answered ${status}, not ${expected}`
  return typeof json.error === 'string' && Object.keys(json).length === 1 ? null : `answered ${JSON.stringify(json)}`
}

/** Undefined: no JSON in UTF-8. A byte order mark may be there (RFC 8259 §8.1). */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/** A lone surrogate cannot be written in a portable schema. */
const isWellFormed = (value: unknown) => (value as { name: string }).name.isWellFormed()

const shown = (bytes: Uint8Array) => printable(Buffer.from(bytes.subarray(0, 120)).toString('latin1'))

/** What is known to upset parsers. Each address is one that nothing else uses. */
function corpus(): Uint8Array[] {
  let count = 0
  const email = () => `json-${count++}@example.com`
  const of = (name: string) => `"name":${name},"email":"${email()}"`
  const padded = (size: number) => {
    const body = `{${of('"Ada"')}}`
    return body + ' '.repeat(size - body.length)
  }
  const texts = [
    '',
    ' ',
    '\0',
    'null',
    'true',
    '0',
    '""',
    '[]',
    '{}',
    '{',
    '}',
    '{}{}',
    '[{}]',
    'NaN',
    '{"name":NaN}',
    `{${of("'Ada'")}}`,
    `{${of('"Ada"')},}`,
    `{${of('"Ada"')}} x`,
    `{${of('"Ada"')}}\0`,
    `\0{${of('"Ada"')}}`,
    `{${of('"Ada"')}}//`,
    `/**/{${of('"Ada"')}}`,
    `\ufeff{${of('"Ada"')}}`,
    `\ufeff\ufeff{${of('"Ada"')}}`,
    `\u00a0{${of('"Ada"')}}`,
    `\t\r\n {${of('"Ada"')}} \n`,
    `{${of('null')}}`,
    `{${of('1')}}`,
    `{${of('true')}}`,
    `{${of('["Ada"]')}}`,
    `{${of('{"a":1}')}}`,
    `{${of('{"toString":"x"}')}}`,
    `{${of('"Ada"').replace(/"email":("[^"]*")/, '"email":[$1]')}}`,
    `{${of('"Ada"')},"name":"Eve"}`,
    `{"name":1,${of('"Ada"')}}`,
    `{${of('"Ada"')},"email":1}`,
    `{${of('"Ada"')},"email":"${email()}"}`,
    `{"__proto__":{${of('"Ada"')}}}`,
    `{"__proto__":{"name":"Eve","isAdmin":true},${of('"Ada"')}}`,
    `{"constructor":{"prototype":{"name":"Eve"}},${of('"Ada"')}}`,
    `{"\\u005f\\u005fproto__":null,${of('"Ada"')}}`,
    `{"n\\u0061me":"Ada","email":"${email()}"}`,
    `{"Name":"Ada","Email":"${email()}"}`,
    `{"name\\u0000":"Ada","email":"${email()}"}`,
    ...['ud800', 'udfff', 'udc00\\ud800', 'ud800x'].map(lone => `{${of(`"\\${lone}"`)}}`),
    `{${of('"Ada"')},"more":"\\ud800"}`,
    `{${of('"\\ud83d\\ude00"')}}`,
    ...[
      '\\u0000',
      '\\u001f',
      '\\u007f',
      '\\u0085',
      '\\u2028',
      '\\u2029',
      '\\u200b',
      '\\u202e',
      '\\ufeff',
      '\\ufffe',
    ].map(text => `{${of(`"A${text}B"`)}}`),
    ...['\u2028', '\u0000', '\n', '\t'].map(text => `{${of(`"A${text}B"`)}}`),
    `{${of('"\\x41"')}}`,
    `{${of('"\\u00"')}}`,
    `{${of('"Ada')}}`,
    ...[
      '1e999',
      '-1e999',
      '1e-999',
      '9'.repeat(5_000),
      `0.${'1'.repeat(5_000)}`,
      '-0',
      '01',
      '+1',
      '.5',
      '1.',
      '0x10',
    ].map(number => `{${of('"Ada"')},"more":${number}}`),
    `{${of('"Ada"')},"more":${'['.repeat(8_000)}${']'.repeat(8_000)}}`,
    `{${of('"Ada"')},"more":${'['.repeat(8_000)}}`,
    `{${of('"Ada"')},"more":${'{"a":'.repeat(2_000)}1${'}'.repeat(2_000)}}`,
    `${'['.repeat(16_000)}`,
    `{${Array.from({ length: 1_000 }, (_, i) => `"m${i}":1,`).join('')}${of('"Ada"')}}`,
    `{${'"a":1,'.repeat(2_000)}${of('"Ada"')}}`,
    `{${of(`"${'a'.repeat(100)}"`)}}`,
    `{${of(`"${'a'.repeat(101)}"`)}}`,
    `{${of(`"${'😀'.repeat(100)}"`)}}`,
    `{${of(`"${'😀'.repeat(101)}"`)}}`,
    `{${of(`"${' '.repeat(10_000)}Ada"`)}}`,
    `{"name":"Ada","email":"${'a'.repeat(15_000)}@example.com"}`,
    `{"name":"Ada","email":"${'a.'.repeat(7_000)}"}`,
    `{"name":"Ada","email":"a@${'a-'.repeat(7_000)}"}`,
    `{"name":"Ada","email":"${'a@'.repeat(7_000)}"}`,
    padded(LIMIT - 1),
    padded(LIMIT),
    padded(LIMIT + 1),
    padded(LIMIT * 4),
  ]
  const around = (bytes: readonly number[]) =>
    Buffer.concat([Buffer.from(`{"email":"${email()}","name":"`), Buffer.from(bytes), Buffer.from('"}')])
  const wrong = [
    // Alone, too long, a surrogate, beyond Unicode, cut short, Latin-1.
    [0x80],
    [0xc0, 0xaf],
    [0xe0, 0x80, 0xaf],
    [0xed, 0xa0, 0x80],
    [0xf4, 0x90, 0x80, 0x80],
    [0xf0, 0x9f, 0x98],
    [0xe4],
    [0xfe, 0xff],
  ].map(around)
  const whole = `{${of('"Ada"')}}`
  return [
    ...texts.map(text => Buffer.from(text)),
    ...wrong,
    Buffer.from(whole, 'utf16le'),
    Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(whole, 'utf16le')]),
  ]
}

const someName = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 120 }),
  fc.constantFrom('Ada', ' Ada ', '', ' ', '__proto__'),
)
const someEmail = fc.oneof(
  fc.emailAddress(),
  fc.emailAddress().map(email => ` ${email}\t`),
  fc.uuid().map(id => `${id}@example.com`),
  fc.string({ unit: 'binary', maxLength: 300 }),
)
const signups = fc.record(
  {
    name: fc.oneof({ weight: 4, arbitrary: someName }, fc.jsonValue()),
    email: fc.oneof({ weight: 4, arbitrary: someEmail }, fc.jsonValue()),
  },
  { requiredKeys: [] },
)
const texts = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(signups, fc.dictionary(fc.string(), fc.jsonValue()))
      .map(([a, b]) => JSON.stringify({ ...b, ...a })),
  },
  fc.json({ maxDepth: 20 }),
  fc.string({ unit: 'binary' }),
)
/** Texts, and texts in which some bytes were changed, left out or put in. */
const bodies: fc.Arbitrary<Uint8Array> = fc
  .tuple(
    texts.map(text => Buffer.from(text)),
    fc.array(fc.tuple(fc.nat(), fc.nat(2), fc.nat(255)), { maxLength: 2 }),
  )
  .map(([bytes, changes]) => {
    const all = [...bytes]
    for (const [at, removed, byte] of changes) all.splice(at % (all.length + 1), removed, byte)
    return Buffer.from(all)
  })
