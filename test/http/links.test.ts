/** The pages behind the links in mails, in front of a store that a test watches. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import type { HttpParts, LinkParts } from '../../src/http/context.ts'
import { notFound } from '../../src/http/errors.ts'
import { BODY_LIMIT } from '../../src/http/limits.ts'
import { readMessages } from '../../src/http/messages/file.ts'
import { ofLinks } from '../../src/http/messages/links.ts'
import { linksOf, purposes } from '../../src/links/links.ts'
import { escapeHtml } from '../../src/pages/html.ts'
import { memoryLimiter } from '../../src/rate-limit/memory.ts'
import { StoreUnavailable } from '../../src/store/database.ts'
import { type ApiDocument, assertDocumented } from '../harness/document.ts'
import { send } from '../harness/raw.ts'
import { openTestServer } from '../harness/server.ts'
import { startService } from '../harness/service.ts'

const secret = 'ab'.repeat(32)
const ada = { id: '01981d4f-3c00-7c4e-9d0a-3f1c2b4d5e6f', email: 'Ada@example.com' }
const bob = { id: '01981d4f-3c00-7c4e-9d0a-3f1c2b4d5e70', email: 'bob@example.com' }
const WITHIN = 3_600_000
const messages = new URL('../../examples/messages/messages.json', import.meta.url).pathname
const settings = { SERVICE_NAME: 'Acme & <Sons>', MESSAGES_FILE: messages }

/** A server whose store knows nobody until it is told, and what was asked of that. */
async function opened(t: TestContext, given: Partial<LinkParts> = {}, parts: Partial<HttpParts> = {}) {
  const asked: string[] = []
  const confirmed = new Set<string>()
  const links: LinkParts = {
    secret,
    async confirm({ id, email }) {
      asked.push(`confirm ${email}`)
      if (id !== ada.id) return null
      const before = confirmed.has(id)
      confirmed.add(id)
      return before ? 'before' : 'now'
    },
    async leave(email) {
      asked.push(`leave ${email}`)
    },
    ...given,
  }
  const server = await openTestServer(t, settings, store => store, { links, ...parts })
  const { baseUrl } = server
  const document = (await (await fetch(`${baseUrl}/api/openapi.json`)).json()) as ApiDocument
  async function ask(link: string, init: RequestInit = {}) {
    const response = await fetch(link, init)
    const { status, headers } = response
    const html = await response.text()
    assertDocumented(document, init.method ?? 'GET', new URL(link).pathname, { status, headers, body: html })
    const heading = /<h1>(.*)<\/h1>/.exec(html)?.[1]
    return { status, headers, html, heading, hasButton: html.includes('<button>') }
  }
  const linked = (now?: () => number) => linksOf(baseUrl, secret, WITHIN, now)
  return { ...server, asked, ask, links: linked(), linked }
}

const post = { method: 'POST' }
const oneClick = { ...post, body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }) }

describe('a link in a mail', () => {
  test('is followed by GET and HEAD as often as anybody likes: it shows a button, and the store is not asked', async t => {
    const { ask, asked, links } = await opened(t)
    for (const purpose of purposes) {
      const link = links[purpose](ada)
      for (const method of ['GET', 'HEAD', 'GET']) {
        const { status, headers, html, heading, hasButton } = await ask(link, { method })
        assert.equal(status, 200)
        if (method === 'GET') assert.deepEqual([heading, hasButton], [ofLinks[`${purpose}.ask`], true])
        else assert.equal(html, '')
        assert.equal(headers.get('cache-control'), 'no-store')
        assert.equal(headers.get('referrer-policy'), 'no-referrer')
        assert.equal(headers.get('x-robots-tag'), 'noindex')
        assert.match(
          headers.get('content-security-policy')!,
          /^default-src 'none'; style-src 'sha256-[^']+'; .*form-action 'self'; frame-ancestors 'none'$/,
        )
      }
    }
    assert.deepEqual(asked, [])
  })

  test('confirms by POST, once; every later time says so', async t => {
    const { ask, asked, links } = await opened(t)
    const link = links.confirm(ada)
    const said = [await ask(link, post), await ask(link, post), await ask(links.confirm(bob), post)]
    assert.deepEqual(
      said.map(({ status, heading }) => [status, heading]),
      [
        [200, ofLinks['confirm.done']],
        [200, ofLinks['confirm.doneBefore']],
        [410, ofLinks['confirm.expired']],
      ],
    )
    assert.deepEqual(asked, ['confirm Ada@example.com', 'confirm Ada@example.com', 'confirm bob@example.com'])
  })

  test('unsubscribes by POST, from its page and in one click of a mail program (RFC 8058), with the same answer always', async t => {
    const { ask, asked, baseUrl, links } = await opened(t)
    const multipart = new FormData()
    multipart.set('List-Unsubscribe', 'One-Click')
    for (const [contact, init] of [
      [ada, post],
      [ada, oneClick],
      [bob, { ...post, body: multipart }],
    ] as const) {
      const { status, heading, hasButton } = await ask(links.unsubscribe(contact), init)
      assert.deepEqual([status, heading, hasButton], [200, ofLinks['unsubscribe.done'], false])
    }
    // Without a body, whose length need not be said then (RFC 9112 §6.3).
    const { pathname, search } = new URL(links.unsubscribe(ada))
    const { status } = await send(baseUrl, [
      `POST ${pathname}${search} HTTP/1.1`,
      'Host: localhost',
      'Connection: close',
    ])
    assert.equal(status, 200)
    assert.deepEqual(
      asked,
      ['Ada', 'Ada', 'bob', 'Ada'].map(name => `leave ${name}@example.com`),
    )
  })

  test('that is forged, cut, of another purpose, of another installation or too old asks nothing of the store', async t => {
    const { ask, asked, baseUrl, links, linked } = await opened(t)
    const other = linksOf(baseUrl, 'cd'.repeat(32), WITHIN)
    for (const purpose of purposes) {
      const good = links[purpose](ada)
      const swapped = purposes.find(each => each !== purpose)!
      const wrong = [
        good.replace(/(?<=token=.)./, character => (character === 'A' ? 'B' : 'A')),
        good.slice(0, -1),
        links[swapped](ada).replace(`/${swapped}`, `/${purpose}`),
        other[purpose](ada),
        `${baseUrl}/${purpose}`,
        `${baseUrl}/${purpose}?token=`,
      ]
      for (const link of wrong) {
        for (const init of [{}, post]) {
          const { status, heading, hasButton } = await ask(link, init)
          assert.deepEqual([status, heading, hasButton], [404, ofLinks['link.invalid'], false], link)
        }
      }
    }
    const old = linked(() => Date.now() - WITHIN)
    for (const init of [{}, post]) {
      const { status, heading, hasButton } = await ask(old.confirm(ada), init)
      assert.deepEqual([status, heading, hasButton], [410, ofLinks['confirm.expired'], false])
    }
    assert.deepEqual(asked, [])
    assert.equal((await ask(old.unsubscribe(ada), post)).heading, ofLinks['unsubscribe.done'])
  })

  test('says to try again while the store is away, and is in no log', async t => {
    const away = async () => {
      throw new StoreUnavailable('the disk is full')
    }
    const { ask, links, logged } = await opened(t, { confirm: away, leave: away })
    for (const purpose of purposes) {
      const link = links[purpose](ada)
      assert.equal((await ask(link)).status, 200)
      const { status, heading, hasButton } = await ask(link, post)
      assert.deepEqual([status, heading, hasButton], [500, ofLinks['link.failed'], false])
      const token = link.split('=')[1]!
      assert.ok(logged.length > 0)
      assert.ok(!JSON.stringify(logged).includes(token.slice(0, 20)))
    }
  })

  test('has bounds: a body as large as a signup’s, and as many uses as a client has attempts, for each link', async t => {
    const limiter = memoryLimiter({ limit: 3, window: 3_600 })
    const { ask, asked, links } = await opened(t, {}, { limiter })
    const { status } = await fetch(links.unsubscribe({ ...ada, id: randomUUID() }), {
      ...post,
      body: 'x'.repeat(BODY_LIMIT + 1),
    })
    assert.equal(status, 413)
    assert.deepEqual(asked, [])
    const statuses = async (link: string) => {
      const all: number[] = []
      for (let i = 0; i < 4; i++) all.push((await ask(link, post)).status)
      return all
    }
    assert.deepEqual(await statuses(links.confirm(ada)), [200, 200, 200, 429])
    const limited = await ask(links.confirm(ada), post)
    assert.deepEqual([limited.status, limited.heading], [429, ofLinks['link.failed']])
    assert.match(limited.headers.get('retry-after')!, /^[1-9]\d*$/)
    assert.equal((await ask(links.confirm(ada))).status, 200, 'the page itself costs nothing')
    assert.equal((await ask(links.unsubscribe(ada), post)).status, 200, 'each link has its own')
    assert.equal((await ask(links.confirm(bob), post)).status, 410, 'a mail provider posts for many')
  })

  test('speaks the language of its reader', async t => {
    const { ask, links } = await opened(t)
    const translations = readMessages(messages)
    for (const [language, direction] of [
      ['de', 'ltr'],
      ['ar', 'rtl'],
      ['en', 'ltr'],
    ] as const) {
      const { html, heading, headers } = await ask(links.confirm(ada), { headers: { 'accept-language': language } })
      const expected = { ...ofLinks, ...translations.get(language) }
      assert.equal(heading, escapeHtml(expected['confirm.ask']))
      assert.ok(html.includes(`<button>${escapeHtml(expected['confirm.button'])}</button>`))
      assert.ok(html.includes(`<html lang="${language}" dir="${direction}">`))
      assert.deepEqual([headers.get('content-language'), headers.get('vary')], [language, 'Accept-Language'])
      assert.ok(html.includes('Acme &amp; &lt;Sons&gt;'))
    }
  })
})

test('without CONFIRM=mail there is no such page, and no word of it', async t => {
  const { baseUrl } = await startService(t)
  for (const purpose of purposes) {
    for (const method of ['GET', 'POST']) {
      const answer = await fetch(linksOf(baseUrl, secret, WITHIN)[purpose](ada), { method })
      assert.deepEqual([answer.status, await answer.json()], [404, { error: notFound.error }])
    }
  }
  assert.doesNotMatch(await (await fetch(`${baseUrl}/api/openapi.json`)).text(), /unsubscribe|confirm\b/i)
})
