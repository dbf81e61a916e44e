import { readFileSync } from 'node:fs'
import type { Context } from '../http/context.ts'
import { publicHeaders } from '../http/response.ts'
import { staticRoute } from '../http/static.ts'
import type { Language } from '../messages/languages.ts'
import { formSentences, results } from '../messages/sentences.ts'
import { EMAIL_PATTERN } from '../signup/contact.ts'

/** A page that is opened again within a day has the form at once, even if the service is away (RFC 5861 §3). */
const headers = { ...publicHeaders, 'cache-control': 'public, max-age=300, stale-while-revalidate=86400' }
const JAVASCRIPT = 'text/javascript; charset=utf-8'

const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8')

/** Without indentation, and without comments that have lines to themselves. */
const compact = (text: string) => text.replaceAll(/^\s*\/[/*].*\n|^\s+/gm, '')

/** What the form says: its own sentences by key, and those of the API, where they differ, by what the API says. */
function wordsOf({ sentences }: Language) {
  const own = (Object.keys(formSentences) as (keyof typeof formSentences)[]).map(key => [
    key.replace('form.', ''),
    sentences[key],
  ])
  const ofApi = (Object.keys(results) as (keyof typeof results)[]).map(key => [results[key], sentences[key]])
  return Object.fromEntries([...own, ...ofApi.filter(([english, text]) => text !== english)])
}

/** The form as one module with its settings, and what it imports if there is a challenge. */
export function formRoutes({ challenge, languages }: Pick<Context, 'challenge' | 'languages'>) {
  const settings = {
    languages: Object.fromEntries(
      languages.all.map(each => [each.tag.toLowerCase(), { tag: each.tag, dir: each.direction, words: wordsOf(each) }]),
    ),
    challenge: challenge && { member: challenge.member, widget: challenge.widget },
    email: EMAIL_PATTERN,
    style: compact(read('./form.css')).replaceAll(/\s*([{};])\s*/g, '$1'),
  }
  const script = `const FORM = ${JSON.stringify(settings)}\n${compact(read('./form.js'))}`
  return {
    form: { GET: staticRoute(JAVASCRIPT, script, headers) },
    formChallenge: { GET: staticRoute(JAVASCRIPT, read('./challenge.js'), headers) },
  }
}
