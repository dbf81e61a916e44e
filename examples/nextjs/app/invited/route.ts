/**
 * Lets in those whom Waitlist has invited, as a route handler of Next.js: app/invited/route.ts. The link in their mail shows a
 * page and changes nothing, since mail scanners follow links; its button redeems the code. ADMIN_TOKEN, and WAITLIST_ADMIN
 * where it is another address, are in .env.local.
 */

interface Invitation {
  readonly email: string
  readonly name: string
  readonly invitedAt: string
  readonly redeemedAt: string | null
}

/** Whose code it is; null: nobody's. With POST it is redeemed. */
async function invitation(request: Request, method: 'GET' | 'POST'): Promise<Invitation | null> {
  const { WAITLIST_ADMIN = 'http://localhost:9090', ADMIN_TOKEN } = process.env
  const code = new URL(request.url).searchParams.get('code') ?? ''
  const response = await fetch(`${WAITLIST_ADMIN}/invitations/${encodeURIComponent(code)}`, {
    method,
    headers: ADMIN_TOKEN ? { authorization: `Bearer ${ADMIN_TOKEN}` } : {},
    signal: AbortSignal.timeout(5_000),
    cache: 'no-store',
  })
  if (response.status === 404) return null
  if (!response.ok) throw new Error(`Waitlist answers with ${response.status}`)
  return (await response.json()) as Invitation
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)

function page(body: string, status = 200): Response {
  const headers = {
    'content-type': 'text/html; charset=utf-8',
    // The address of this page has the code in it, which no other site may learn.
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-store',
  }
  return new Response(`<!doctype html><meta charset="utf-8"><title>Early access</title>${body}`, { status, headers })
}

const unknown = (): Response => page('This invitation is not known.', 404)

export async function GET(request: Request): Promise<Response> {
  const invited = await invitation(request, 'GET')
  if (invited === null) return unknown()
  return page(`<form method="post"><p>Welcome, ${escaped(invited.name)}.</p><button>Come in</button></form>`)
}

export async function POST(request: Request): Promise<Response> {
  const invited = await invitation(request, 'POST')
  if (invited === null) return unknown()
  // Make the account of `invited.email` here, if there is none yet, and begin its session. Who has one logs in as always: the
  // code opens a new account, and never an old one.
  return page(`You are in, ${escaped(invited.name)}.`)
}
