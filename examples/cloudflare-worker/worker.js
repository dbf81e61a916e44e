/**
 * Receives the events of Waitlist in a Cloudflare Worker. It needs a KV namespace, bound as EVENTS, which remembers what has
 * arrived, and a secret:
 *
 *   npm install standardwebhooks
 *   npx wrangler secret put WEBHOOK_SECRET
 *   npx wrangler deploy
 */
import { Webhook } from 'standardwebhooks'

/** Seconds; longer than an event is tried again. A replay by hand may come later. */
const REMEMBERED = 7 * 24 * 60 * 60

export default {
  async fetch(request, env) {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    let event
    try {
      event = new Webhook(env.WEBHOOK_SECRET).verify(await request.text(), Object.fromEntries(request.headers))
    } catch {
      return new Response(null, { status: 401 })
    }
    const id = request.headers.get('webhook-id')
    if (event.type !== 'waitlist.joined' || (await env.EVENTS.get(id)) !== null)
      return new Response(null, { status: 204 })

    // Your own work. If it throws, the answer is a 500, and the event comes again.
    console.log(`received ${id}`)

    await env.EVENTS.put(id, 'received', { expirationTtl: REMEMBERED })
    return new Response(null, { status: 204 })
  },
}
