import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { SOLUTION_EXAMPLE } from '../../src/http/discovery/schemas.ts'
import { startService } from '../harness/service.ts'
import { solved } from '../harness/solve.ts'

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }
const textOf = (html: string): string =>
  html.replaceAll(/<[^>]+>/g, '').replaceAll(/&([\w#]+);/g, (_, name) => entities[name]!)

/** The examples in one language, as a reader would copy them; each one once. The Markdown has those of the page and more. */
async function examples(baseUrl: string, language: string): Promise<string[]> {
  const read = async (accept: string, pattern: RegExp) => {
    const text = await (await fetch(`${baseUrl}/docs/api`, { headers: { accept } })).text()
    return new Set([...text.matchAll(pattern)].map(([, code]) => code!))
  }
  const inMarkdown = await read('text/markdown', new RegExp(`^\`\`\`${language}\n(.*?)\n\`\`\`$`, 'gms'))
  const inPage = await read('text/html', new RegExp(`<pre data-language="${language}"><code>(.*?)</code></pre>`, 'gs'))
  assert.ok(inPage.size > 0, `examples in ${language}`)
  for (const code of inPage) assert.ok(inMarkdown.has(textOf(code)), code)
  return [...inMarkdown]
}

async function run([program = '', ...args]: string[], input: string): Promise<string> {
  const child = spawn(program, args, { stdio: 'pipe' })
  child.stdin.end(input)
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
  assert.equal(child.exitCode ?? (await new Promise(resolve => child.on('close', resolve))), 0, `${input}\n${errors}`)
  return output
}

const languages = [
  { name: 'curl', language: 'sh', command: ['sh', '-es'], needs: ['curl', '--version'] },
  { name: 'JavaScript', language: 'js', command: [process.execPath, '--input-type=module', '-'], needs: [] },
  { name: 'Python', language: 'python', command: ['python3', '-'], needs: ['python3', '--version'] },
] as const

for (const { name, language, command, needs } of languages) {
  const [program, ...args] = needs
  const isMissing = program !== undefined && spawnSync(program, args).status !== 0
  const skip = isMissing && `${program} is not on this machine`

  test(`every ${name} example runs as it stands and does what the documentation says`, {
    skip,
  }, async t => {
    const { baseUrl } = await startService(t)
    const codes = await examples(baseUrl, language)
    const outputs = await Promise.all(codes.map(async code => [code, await run([...command], code)] as const))
    const outputOf = (part: string) => outputs.find(([code]) => code.includes(part))?.[1] ?? `no example has ${part}`

    const signup = outputOf('Ada Lovelace')
    assert.match(signup, /["']alreadyExisted["']?: ?false|alreadyExisted: false/i)
    const again = await run([...command], codes.find(code => code.includes('Ada Lovelace'))!)
    assert.match(again, /["']alreadyExisted["']?: ?true|alreadyExisted: true/i)

    assert.match(outputOf('/api/health'), /["']?status["']?: ?["']ok["']/)
    assert.match(outputOf('/.well-known/api-catalog'), /linkset/)
    assert.match(outputOf('/api/openapi.json'), /3\.1\.\d/)
    assert.match(outputOf('/docs/api'), /^(200 )?# waitlist API$/m)
    if (language !== 'sh') for (const [code, output] of outputs) assert.match(output, /^200 /, code)
  })

  test(`with a challenge, the ${name} example is refused as it stands, and works with a solution in its place`, {
    skip,
  }, async t => {
    const { baseUrl } = await startService(t, { CHALLENGE: 'altcha', CHALLENGE_RANGE: '5' })
    const code = (await examples(baseUrl, language)).find(code => code.includes('Ada Lovelace'))!
    assert.match(await run([...command], code), /the challenge was not solved, please try again/)
    const solution = await solved(await (await fetch(`${baseUrl}/api/challenge`)).text())
    const output = await run([...command], code.replace(SOLUTION_EXAMPLE, solution))
    assert.match(output, /["']?alreadyExisted["']?: ?false/i)
  })
}

test('the preflight example shows whether an origin is allowed', async t => {
  if (spawnSync('curl', ['--version']).status !== 0) return t.skip('curl is not on this machine')
  for (const [origins, allowed] of [
    ['https://www.example.com', true],
    ['https://example.org', false],
  ] as const) {
    const { baseUrl } = await startService(t, { CORS_ORIGINS: origins })
    const code = (await examples(baseUrl, 'sh')).find(code => code.includes('OPTIONS'))!
    const output = await run(['sh', '-es'], code)
    assert.match(output, /^HTTP\/1\.1 204 /)
    assert.equal(/^access-control-allow-origin: https:\/\/www\.example\.com\r$/im.test(output), allowed)
  }
})
