import type { Challenge } from '../challenges/index.ts'
import { formIn } from '../http/messages/form.ts'
import type { Languages } from '../http/messages/languages.ts'
import { publicHeaders } from '../http/response.ts'
import { document } from '../http/static.ts'
import { challengeScript, formScript } from './script.ts'

/** A page that is opened again within a day has the form at once, even if the service is away (RFC 5861 §3). */
const SCRIPT = 'public, max-age=300, stale-while-revalidate=86400'
const JAVASCRIPT = 'text/javascript; charset=utf-8'

/** What the form is made of, and what it asks of the service: the challenge to solve, and its sentences. */
export function formDocuments({ challenge, languages }: { challenge: Challenge | null; languages: Languages }) {
  return {
    form: document(JAVASCRIPT, formScript, { ...publicHeaders, 'cache-control': SCRIPT }),
    formChallenge: document(JAVASCRIPT, challengeScript, { ...publicHeaders, 'cache-control': SCRIPT }),
    formSettings: new Map(
      languages.all.map(language => {
        const text = JSON.stringify({
          challenge: challenge && { member: challenge.member, widget: challenge.widget },
          ...formIn(language),
        })
        const chosen = languages.all.length > 1 && { 'content-language': language.tag, vary: 'Accept-Language' }
        const kept = { ...publicHeaders, 'cache-control': 'public, max-age=300', ...chosen }
        return [language, document('application/json', text, kept)]
      }),
    ),
  }
}
