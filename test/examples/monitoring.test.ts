import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { noPromtool, promtool, scrape } from '../harness/metrics.ts'
import { startService } from '../harness/service.ts'
import { loopsSettings } from '../providers/loops.fake.ts'

const file = fileURLToPath(new URL('../../examples/monitoring/alerts.yml', import.meta.url))

test('promtool finds the alerts in order', { skip: promtool === undefined && noPromtool }, () => {
  execFileSync(promtool!, ['check', 'rules', '--lint-fatal', file])
})

test('the alerts use only metrics and labels that there are', async t => {
  const provider = { PROVIDER: 'loops', ...loopsSettings('http://127.0.0.1:9') }
  const service = await startService(t, { ADMIN_LISTEN: '127.0.0.1:0', ...provider })
  await fetch(`${service.baseUrl}/api/waitlist`)
  const { samples } = await scrape(service.adminOrigin)
  const used = readFileSync(file, 'utf8').matchAll(/\b((?:waitlist|http)_\w+)(?:\{(\w+)=[^}]*\})?/g)
  const metrics = [...used].filter(([, name]) => name !== 'http_route' && name !== 'http_request_method')
  assert.ok(metrics.length >= 8)
  for (const [, name, label] of metrics) {
    const found = samples.filter(sample => sample.name === name)
    assert.ok(found.length > 0, `${name}`)
    assert.ok(label === undefined || found.some(({ labels }) => label in labels), `${name}, ${label}`)
  }
})
