import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { TestContext } from 'node:test'
import { listening } from './listening.ts'
import { fixture } from './tls.ts'

/** In a page: the address of its Waitlist. */
export const SERVICE = 'https://waitlist.example.com'

/** The one line of the documentation, in an element of its own. */
export const FORM = `<script type="module" src="${SERVICE}/form.js"></script><waitlist-form></waitlist-form>`

/** A page about nothing but its form. */
export const pageWith = (form: string, root = 'lang="en"') => `<!doctype html><html ${root}><head><meta charset="utf-8">
  <title>Join</title><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">
  <link rel="icon" href="data:,"></head><body><main><h1>Join</h1>${form}</main></body></html>`

/** Allows what the documentation says, and nothing else. */
export const POLICY = `default-src 'none'; script-src ${SERVICE}; connect-src ${SERVICE}; img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'`

export interface Landing {
  /** Under a name that is given, such as `www.shop.localhost`: browsers find all names in `localhost` on this machine. */
  originAt(host: string): string
  /** From now on the form of the page sends to this address. */
  sendTo(service: string): void
}

/** Serves a page on an origin of its own until the test ends. */
export async function landing(
  test: Pick<TestContext, 'after'>,
  page: string,
  { tls = false, policy = POLICY } = {},
): Promise<Landing> {
  let address = ''
  const addressed = (text: string) => text.replaceAll(SERVICE, address)
  const answer: Parameters<typeof createServer>[1] = (_, response) =>
    response
      .setHeader('content-type', 'text/html')
      .setHeader('content-security-policy', addressed(policy))
      .end(addressed(page))
  const pair = () => ({ cert: readFileSync(fixture('first.crt')), key: readFileSync(fixture('first.key')) })
  const { port } = new URL(await listening(test, tls ? createTlsServer(pair(), answer) : createServer(answer)))
  return {
    originAt: host => `${tls ? 'https' : 'http'}://${host}:${port}`,
    sendTo(service) {
      address = service
    },
  }
}
