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

/** With all that makes it longer. */
const everything = { TRACK_SOURCES: 'true', CHALLENGE: 'altcha', HOLD_SUSPICIOUS: 'true' }

async function spectral(source: string) {
  const linter = new spectralCore.Spectral()
  linter.setRuleset(ruleset)
  return linter.run(new spectralCore.Document(source, spectralParsers.Json, 'openapi.json'))
}

const redocly = async (source: string) =>
  lintFromString({
    source,
    absoluteRef: 'openapi.json',
    config: await createConfig({ extends: ['recommended-strict'] }),
  })

for (const [title, env] of [
  ['', {}],
  [', also with TRACK_SOURCES=true, a challenge and held signups', everything],
] as const) {
  const skip = title === '' && !isSlow && 'it runs in .ci/run; with sources there is all of it, and more'
  test(`C-87: neither Spectral, hints included, nor Redocly by its strictest rules finds anything in the document${title}`, {
    skip,
  }, async t => {
    const source = await publishedDocument(t, env)
    assert.deepEqual(
      (await spectral(source)).map(({ code, path, message }) => `${code} at ${path.join('.')}: ${message}`),
      [],
    )
    assert.deepEqual(
      (await redocly(source)).map(
        ({ ruleId, location, message }) => `${ruleId} at ${location[0]?.pointer}: ${message}`,
      ),
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

  const codes = (await spectral(source)).map(({ code }) => code)
  assert.ok(codes.includes('operation-operationId') && codes.includes('oas3-valid-media-example'), codes.join())
  assert.ok((await redocly(source)).some(({ ruleId }) => ruleId === 'operation-4xx-response'))
})
