import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { freePort, listening } from '../harness/port.ts'
import { startService } from '../harness/service.ts'
import { pairIn } from '../harness/tls.ts'

const script = fileURLToPath(new URL('../../deploy/health.js', import.meta.url))

/** The exit code of the health check of the image, with these settings. */
async function health(env: Record<string, string>): Promise<number> {
  const child = spawn(process.execPath, [script], { env, stdio: 'ignore' })
  const [code] = await once(child, 'close')
  return code
}

const portOf = (baseUrl: string) => new URL(baseUrl).port

describe('the health check of the image', { concurrency: true }, () => {
  for (const HOST of ['0.0.0.0', '']) {
    test(`finds a healthy service where it listens, with HOST=${HOST}`, async t => {
      const { baseUrl } = await startService(t, HOST === '' ? {} : { HOST })
      assert.equal(await health({ HOST, PORT: portOf(baseUrl) }), 0)
    })
  }

  test('over TLS too, whatever name the certificate is for', async t => {
    const { env } = pairIn(t)
    const { baseUrl } = await startService(t, env)
    assert.equal(await health({ PORT: portOf(baseUrl), ...env }), 0)
    assert.equal(await health({ PORT: portOf(baseUrl) }), 1, 'plain HTTP')
  })

  test('fails on a 503 and a 302', async t => {
    for (const status of [503, 302]) {
      const url = await listening(
        t,
        createServer((_, response) => response.writeHead(status, { location: '/' }).end()),
      )
      assert.equal(await health({ HOST: 'localhost', PORT: portOf(url) }), 1)
    }
  })

  test('fails where nobody listens', async () => {
    assert.equal(await health({ HOST: '127.0.0.1', PORT: `${await freePort()}` }), 1)
  })
})
