import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { openAdmin } from '../../src/admin/server.ts'
import { telemetry } from '../../src/telemetry/telemetry.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { read } from '../harness/metrics.ts'
import { noPromtool, promtool } from '../harness/promtool.ts'
import { recordingLog } from '../harness/service.ts'

const folder = fileURLToPath(new URL('../../examples/monitoring/', import.meta.url))
const text = (name: string) => readFileSync(join(folder, name), 'utf8')

const rules = [...text('alerts.yml').matchAll(/^ +expr: (>-\n(?:(?: {10}.*)\n)+|.*)/gm)].map(([, expr]) => expr!)

const run = promisify(execFile)
const skip = promtool === undefined && noPromtool

test('promtool finds the alerts in order', { skip }, async () => {
  await run(promtool!, ['check', 'rules', '--lint-fatal', 'alerts.yml'], { cwd: folder })
})

test('the alerts ask only for metrics, labels and values that there are', async t => {
  const { log } = recordingLog()
  const numbers = telemetry()
  numbers.requests.note('/api/waitlist', 'POST', 200, 0.01)
  const admin = await openAdmin(
    { host: '127.0.0.1', port: 0, token: null },
    {
      invitations: { invitation: async () => null, redeem: async () => null },
      service: 'Waitlist',
      version: '0.0.0',
      telemetry: numbers,
      store: {
        check: async () => {},
        counts: async () => ({
          at: new Date(),
          contacts: { unconfirmed: 0, pending: 0, listed: 0, held: 0, invited: 0 },
          redeemed: 0,
          held: [],
          signups: [],
          sources: [],
          sourced: 0,
          deliveries: [],
        }),
      },
      folder: temporaryFolder(t),
      provider: 'loops',
      destinations: [{ name: 'loops', outage: () => null }],
      lateAfter: () => 0,
      isDraining: () => false,
      log,
    },
  )
  t.after(admin.close)
  const { samples } = read(await (await fetch(`${admin.origin}/metrics`)).text())
  let metrics = 0
  for (const question of rules) {
    // Labels after `by` look like metrics.
    const names = question.replaceAll(/\bby \([^)]*\)/g, '')
    for (const [, name, labels = ''] of names.matchAll(/\b((?:waitlist|http|nodejs|process)_\w+)(?:\{([^}]*)\})?/g)) {
      const found = samples.filter(each => each.name === name)
      assert.ok(found.length > 0, `${name} of ${question}`)
      metrics++
      for (const [, label, is, value] of labels.matchAll(/(\w+)(=~?|!=)"([^"]*)"/g)) {
        // Prometheus adds these two.
        if (label === 'job' || label === 'instance') continue
        const pattern = new RegExp(`^(?:${value})$`)
        assert.ok(
          found.some(each => pattern.test(each.labels[label!] ?? '')),
          `${label}${is}"${value}" of ${question}`,
        )
      }
    }
  }
  assert.ok(metrics >= 8)
})
