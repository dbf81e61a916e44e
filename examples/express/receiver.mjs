/**
 * Receives the events of Waitlist with Express. It keeps nothing: drop repetitions by `webhook-id` where you do your work.
 *
 *   npm install express standardwebhooks
 *   WEBHOOK_SECRET=whsec_… PORT=9090 node receiver.mjs
 */
import express from 'express'
import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.WEBHOOK_SECRET)

// Raw, since the signature is that of the very bytes: no express.json() before it.
const app = express().post('/waitlist', express.raw({ type: 'application/json' }), (request, response) => {
  try {
    const event = webhook.verify(request.body, request.headers)
    if (event.type === 'waitlist.joined') console.log(`received ${request.headers['webhook-id']}`)
    response.sendStatus(204)
  } catch {
    response.sendStatus(401)
  }
})
const server = app.listen(Number(process.env.PORT ?? 9090), 'localhost', () => {
  console.log(`receiving at http://localhost:${server.address().port}/waitlist`)
})
