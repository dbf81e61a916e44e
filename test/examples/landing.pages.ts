import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { listening } from '../harness/listening.ts'
import { fixture } from '../harness/tls.ts'

/** The two examples with a form, as pages. */
export type Example = 'landing/index.html' | 'landing-react/Waitlist.tsx'

export const pathOf = (example: Example) => fileURLToPath(new URL(`../../examples/${example}`, import.meta.url))

async function pageOf(example: Example): Promise<string> {
  if (example.endsWith('.html')) return readFileSync(pathOf(example), 'utf8')
  const contents = `
    import { StrictMode } from 'react'
    import { createRoot } from 'react-dom/client'
    import { Waitlist } from ${JSON.stringify(pathOf(example))}
    const root = createRoot(document.querySelector('main'))
    const joined = outcome => { document.documentElement.dataset.outcome = outcome }
    root.render(<StrictMode><Waitlist service="https://waitlist.example.com" onJoined={joined} /></StrictMode>)`
  const stdin = { contents, loader: 'tsx', resolveDir: fileURLToPath(new URL('.', import.meta.url)) } as const
  // Not minified, so that React warns of what it does not like.
  const { outputFiles } = await build({ stdin, bundle: true, write: false, jsx: 'automatic', format: 'esm' })
  return `<!doctype html><html lang="en" style="background: Canvas"><head><meta charset="utf-8"><title>React</title>
    <meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
    <link rel="icon" href="data:,"></head><body><main></main>
    <script type="module">${outputFiles[0]!.text}</script></body></html>`
}

export interface Landing {
  /** Under a name that is given, such as `www.shop.localhost`: browsers find all names in `localhost` on this machine. */
  originAt(host: string): string
  /** From now on the form of the page sends to this address. */
  sendTo(service: string): void
}

/** Serves an example on an origin of its own until the test ends. */
export async function landing(test: Pick<TestContext, 'after'>, example: Example, tls = false): Promise<Landing> {
  const page = await pageOf(example)
  let address = ''
  const answer: Parameters<typeof createServer>[1] = (_, response) =>
    response.setHeader('content-type', 'text/html').end(page.replace('https://waitlist.example.com', address))
  const pair = () => ({ cert: readFileSync(fixture('first.crt')), key: readFileSync(fixture('first.key')) })
  const { port } = new URL(await listening(test, tls ? createTlsServer(pair(), answer) : createServer(answer)))
  return {
    originAt: host => `${tls ? 'https' : 'http'}://${host}:${port}`,
    sendTo(service) {
      address = service
    },
  }
}
