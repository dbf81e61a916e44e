import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { listening } from '../harness/listening.ts'

const root = new URL('../../', import.meta.url)
const example = (name: string) => new URL(`examples/landing-altcha/${name}`, root)
const widget = (name: string) => new URL(`node_modules/altcha/dist/${name}`, root)

/** What its README has npm get. */
export const widgetFiles: Readonly<Record<string, URL>> = {
  'altcha.min.js': widget('external/altcha.min.js'),
  'altcha.css': widget('external/altcha.css'),
  'pbkdf2.js': widget('workers/pbkdf2.js'),
}

/** Where its README says that each file comes from. */
const files: Readonly<Record<string, readonly [type: string, from: URL]>> = {
  '/': ['text/html', example('index.html')],
  '/waitlist.css': ['text/css', example('waitlist.css')],
  '/waitlist.js': ['text/javascript', example('waitlist.js')],
  '/altcha.min.js': ['text/javascript', widgetFiles['altcha.min.js']!],
  '/altcha.css': ['text/css', widgetFiles['altcha.css']!],
  '/pbkdf2.js': ['text/javascript', widgetFiles['pbkdf2.js']!],
}

const [, policy = ''] = /```\n(default-src .*)\n```/.exec(readFileSync(example('README.md'), 'utf8')) ?? []
export const scriptPath = fileURLToPath(example('waitlist.js'))
export const pagePath = fileURLToPath(example('index.html'))

/** Serves the example with the policy of its README, on an origin of its own; returns that, and how to say where it sends to. */
export async function altchaLanding(test: Pick<TestContext, 'after'>) {
  let service = ''
  const addressed = (text: string) => text.replaceAll('https://waitlist.example.com', service)
  const server = createServer(({ url = '' }, response) => {
    const file = files[url.split('?', 1)[0]!]
    if (file === undefined) return response.writeHead(404).end()
    const [type, from] = file
    response.writeHead(200, { 'content-type': `${type}; charset=utf-8`, 'content-security-policy': addressed(policy) })
    response.end(addressed(readFileSync(from, 'utf8')))
  })
  const { port } = new URL(await listening(test, server))
  return {
    origin: `http://localhost:${port}`,
    sendTo(address: string) {
      service = address
    },
  }
}
