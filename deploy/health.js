// The health check of the image: exit code 0 while the service inside says that it can take signups.
import { request as http } from 'node:http'
import { request as https } from 'node:https'

/** Milliseconds; the service itself answers within one second. */
const TIMEOUT = 4_000

const { HOST, PORT, TLS_CERT_FILE } = process.env
const everywhere = ['', '0.0.0.0', '::']
const options = {
  host: everywhere.includes(HOST ?? '') ? 'localhost' : HOST,
  port: PORT || 8080,
  path: '/api/health',
  // The certificate is for the public name.
  rejectUnauthorized: false,
  signal: AbortSignal.timeout(TIMEOUT),
}
const asked = (TLS_CERT_FILE ? https : http)(options, ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1))
asked.on('error', ({ message }) => {
  process.stderr.write(`${message}\n`)
  process.exit(1)
})
asked.end()
