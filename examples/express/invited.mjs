/**
 * Lets in those whom Waitlist has invited. The link in their mail shows a page and changes nothing, since mail scanners follow
 * links; its button redeems the code. Accounts are in memory here: put your own table in their place, with the address unique.
 *
 *   npm install express
 *   ADMIN_TOKEN=… PORT=3000 node invited.mjs
 */
import express from 'express'

const { WAITLIST_ADMIN = 'http://localhost:9464', ADMIN_TOKEN, PORT = '3000' } = process.env

/** Whose code it is: `{email, name, invitedAt, redeemedAt}`; null: nobody's. With POST it is redeemed. */
async function invitation(code, method) {
  const response = await fetch(`${WAITLIST_ADMIN}/invitations/${encodeURIComponent(code)}`, {
    method,
    headers: ADMIN_TOKEN ? { authorization: `Bearer ${ADMIN_TOKEN}` } : {},
    signal: AbortSignal.timeout(5_000),
  })
  if (response.status === 404) return null
  if (!response.ok) throw new Error(`Waitlist answers with ${response.status}`)
  return response.json()
}

/** By the address in lower case. */
const accounts = new Map()

const escaped = text => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`)
const page = body => `<!doctype html><meta charset="utf-8"><title>Early access</title>${body}`

const app = express()
// The address of this page has the code in it, which no other site may learn.
app.use((_, response, next) => {
  response.set({ 'referrer-policy': 'no-referrer', 'cache-control': 'no-store' })
  next()
})
app.get('/invited', async ({ query }, response) => {
  const invited = await invitation(String(query.code), 'GET')
  if (invited === null) return response.status(404).send(page('This invitation is not known.'))
  response.send(page(`<form method="post"><p>Welcome, ${escaped(invited.name)}.</p><button>Come in</button></form>`))
})
app.post('/invited', async ({ query }, response) => {
  const invited = await invitation(String(query.code), 'POST')
  if (invited === null) return response.status(404).send(page('This invitation is not known.'))
  const key = invited.email.toLowerCase()
  // Who has an account logs in as always: the code opens a new one, and never an old one.
  if (accounts.has(key)) return response.status(409).send(page('You have an account. Log in.'))
  accounts.set(key, { email: invited.email, name: invited.name, since: new Date() })
  // Begin the session of your app here.
  response.send(page(`You are in, ${escaped(invited.name)}.`))
})
const server = app.listen(Number(PORT), 'localhost', () => {
  console.log(`listening at http://localhost:${server.address().port}/invited`)
})
