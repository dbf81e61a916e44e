import { readFileSync } from 'node:fs'
import type { Challenge } from '../challenges/index.ts'
import type { Languages } from '../http/messages/languages.ts'
import { publicHeaders } from '../http/response.ts'
import { document } from '../http/static.ts'
import { EMAIL_PATTERN } from '../signup/contact.ts'
import { formLanguages } from './messages.ts'

/** A page that is opened again within a day has the form at once, even if the service is away (RFC 5861 §3). */
const headers = { ...publicHeaders, 'cache-control': 'public, max-age=300, stale-while-revalidate=86400' }
const JAVASCRIPT = 'text/javascript; charset=utf-8'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

/** Without indentation, and without comments that have lines to themselves. */
const compact = (text: string) => text.replaceAll(/^\s*\/[/*].*\n|^\s+/gm, '')

/** The form as one module with its settings, and what it imports if there is a challenge. */
export function formDocuments({ challenge, languages }: { challenge: Challenge | null; languages: Languages }) {
  const settings = {
    languages: formLanguages(languages),
    challenge: challenge && { member: challenge.member, widget: challenge.widget },
    email: EMAIL_PATTERN,
    style: compact(read('./form.css')).replaceAll(/\s*([{};])\s*/g, '$1'),
  }
  const script = `const FORM = ${JSON.stringify(settings)}\n${compact(read('./form.js'))}`
  return {
    form: document(JAVASCRIPT, script, headers),
    formChallenge: document(JAVASCRIPT, read('./challenge.js'), headers),
  }
}
