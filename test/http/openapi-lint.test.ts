import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import spectralCore, { type RulesetDefinition } from '@stoplight/spectral-core'
import spectralParsers from '@stoplight/spectral-parsers'
import spectralRulesets from '@stoplight/spectral-rulesets'
import { freePort } from '../harness/port.ts'
import { startService } from '../harness/service.ts'
import { isSlow } from '../harness/slow.ts'

/** Its types say `extends` of itself where the ruleset has none. */
const ruleset = { extends: [spectralRulesets.oas as RulesetDefinition] }

/** The document of a service as it is run in public. The linters call localhost and example.com a mistake (C-87). */
async function publishedDocument(
  t: Parameters<typeof startService>[0],
  env: Record<string, string> = {},
): Promise<string> {
  const port = await freePort()
  await startService(t, { BASE_URL: 'https://waitlist.moonbase.app', PORT: String(port), ...env })
  return (await fetch(`http://127.0.0.1:${port}/api/openapi.json`)).text()
}

for (const [title, env] of [
  ['', {}],
  [
    ', also with TRACK_SOURCES=true, a challenge and held signups',
    { TRACK_SOURCES: 'true', CHALLENGE: 'altcha', HOLD_SUSPICIOUS: 'true' },
  ],
] as const) {
  const skip = title === '' && !isSlow && 'it runs in .ci/run; with sources there is all of it, and more'
  test(`C-87: Spectral finds nothing in the document, hints included${title}`, { skip }, async t => {
    const spectral = new spectralCore.Spectral()
    spectral.setRuleset(ruleset)
    const source = await publishedDocument(t, env)
    const findings = await spectral.run(new spectralCore.Document(source, spectralParsers.Json, 'openapi.json'))
    assert.deepEqual(
      findings.map(({ code, path, message }) => `${code} at ${path.join('.')}: ${message}`),
      [],
    )
  })

  test(`C-87: Redocly finds nothing in the document by its strictest rules${title}`, { skip }, async t => {
    const config = await createConfig({ extends: ['recommended-strict'] })
    const source = await publishedDocument(t, env)
    const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
    assert.deepEqual(
      problems.map(({ ruleId, location, message }) => `${ruleId} at ${location[0]?.pointer}: ${message}`),
      [],
    )
  })
}

test('C-87: both linters do find a mistake when there is one', async t => {
  const broken = JSON.parse(await publishedDocument(t))
  delete broken.paths['/api/health'].get.operationId
  delete broken.paths['/api/health'].get.responses['4XX']
  broken.paths['/api/waitlist'].post.requestBody.content['application/json'].examples.signup.value = { name: 1 }
  const source = JSON.stringify(broken)

  const spectral = new spectralCore.Spectral()
  spectral.setRuleset(ruleset)
  const findings = await spectral.run(new spectralCore.Document(source, spectralParsers.Json, 'openapi.json'))
  const codes = findings.map(({ code }) => code)
  assert.ok(codes.includes('operation-operationId') && codes.includes('oas3-valid-media-example'), codes.join())

  const config = await createConfig({ extends: ['recommended-strict'] })
  const problems = await lintFromString({ source, absoluteRef: 'openapi.json', config })
  assert.ok(problems.some(({ ruleId }) => ruleId === 'operation-4xx-response'))
})
