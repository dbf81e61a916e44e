/** The routes, the catalog, the links and the OpenAPI document are all built from these. */
export const paths = {
  root: '/',
  waitlist: '/api/waitlist',
  health: '/api/health',
  challenge: '/api/challenge', // only while this service makes challenges
  form: '/form.js',
  formChallenge: '/form-challenge.js', // what the former loads where a challenge is asked for
  confirm: '/confirm', // what links in mails lead to
  unsubscribe: '/unsubscribe',
  openapi: '/api/openapi.json',
  docs: '/docs/api',
  catalog: '/.well-known/api-catalog', // RFC 9727 §2, RFC 8615 §3
} as const
