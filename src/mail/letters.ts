import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../config/operator.ts'
import { ACCENT } from '../http/html.ts'
import type { EventKind } from '../signup/contact.ts'
import { unknownPlaceholder } from './template.ts'

/** What a mail says, with placeholders. */
interface Letter {
  readonly subject: string
  readonly text: string
  /** Null: the mail is text alone. */
  readonly html: string | null
}

/** The names of the files in `MAIL_TEMPLATES`, without their ending. */
const fileNames: Readonly<Record<EventKind, string>> = { joined: 'welcome', invited: 'invite', confirmation: 'confirm' }

/** What each letter may name. The mail to somebody who has not confirmed repeats no name: a stranger may have typed it. */
const placeholders: Readonly<Record<EventKind, readonly string[]>> = {
  joined: ['name', 'email', 'service', 'unsubscribe'],
  invited: ['name', 'email', 'service', 'code', 'link', 'unsubscribe'],
  confirmation: ['email', 'service', 'link', 'unsubscribe'],
}

/**
 * The letter of an event: the operator's, if the folder has one, or ours.
 *
 * @throws {OperatorError} when a file cannot be read, or its placeholders are wrong.
 */
export function letterOf(kind: EventKind, folder: string | null, hasInviteLink: boolean): Letter {
  const path = folder === null ? '' : join(folder, `${fileNames[kind]}.txt`)
  const htmlPath = path.replace(/\.txt$/, '.html')
  if (folder === null || !(existsSync(path) || existsSync(htmlPath))) return ourLetter(kind, hasInviteLink)
  const known = placeholders[kind].filter(name => name !== 'link' || kind !== 'invited' || hasInviteLink)
  const needed = kind === 'confirmation' ? ['link', 'unsubscribe'] : ['unsubscribe']
  const [, subject, text] =
    /^Subject:[ \t]*(\S[^\r\n]{0,199})\r?\n\s*(\S.*)$/s.exec(readTemplate(path, known, needed)) ?? []
  if (subject === undefined)
    throw wrong(path, 'must begin with a line such as "Subject: Welcome", and then have the text')
  return { subject, text: text!, html: existsSync(htmlPath) ? readTemplate(htmlPath, known, needed) : null }
}

const wrong = (path: string, why: string) => new OperatorError(`MAIL_TEMPLATES: ${path} ${why}`)

function readTemplate(path: string, known: readonly string[], needed: readonly string[]): string {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(path))
  } catch (error) {
    throw wrong(path, `cannot be used: ${(error as Error).message}`)
  }
  const unknown = unknownPlaceholder(text, known)
  const list = known.map(name => `{${name}}`).join(', ')
  if (unknown !== undefined) throw wrong(path, `has ${unknown}, but the placeholders are ${list}`)
  const missing = needed.find(name => !text.includes(`{${name}}`))
  if (missing !== undefined) throw wrong(path, `lacks {${missing}}`)
  return text
}

/** The same words as text and as HTML. */
interface Words {
  readonly subject: string
  readonly headline: string
  readonly greeting?: string
  readonly words: string
  /** What the reader clicks or copies. */
  readonly action?: { readonly text: string; readonly html: string }
  readonly note: string
}

const BUTTON = `display: inline-block; padding: 14px 28px; border-radius: 8px; background: ${ACCENT}; color: #fff; font-weight: 600; text-decoration: none`
const CODE =
  'display: inline-block; padding: 12px 20px; border: 1px solid #999; border-radius: 8px; font: 18px monospace'
const SMALL = 'margin: 0 0 16px; font-size: 14px; opacity: 0.75'

const button = (label: string) => ({ text: '{link}', html: `<a href="{link}" style="${BUTTON}">${label}</a>` })

const GREETING = 'Hi {name},'

const confirmation: Words = {
  subject: 'Confirm your address for {service}',
  headline: 'Confirm your email address',
  words: 'Someone, hopefully you, signed up for {service} with this address. Confirm it to join the waitlist.',
  action: button('Confirm my address'),
  note: "If it wasn't you, ignore this mail. An address that isn't confirmed is deleted.",
}

const welcome: Words = {
  subject: "You're on the waitlist for {service}",
  headline: "You're on the waitlist for {service}.",
  greeting: GREETING,
  words: "Thanks for signing up. We'll write to you when it's your turn; until then, there's nothing else to do.",
  note: "If you didn't sign up, someone mistyped their address: ignore this mail, or unsubscribe.",
}

const READY = "Thanks for waiting. Your place is ready, and we'd love to see you inside."

const invitation = (hasLink: boolean): Words => ({
  subject: "It's your turn: you're invited to {service}",
  headline: "It's your turn. You're invited to {service}.",
  greeting: GREETING,
  words: hasLink ? READY : `${READY} This is your code:`,
  action: hasLink ? button('Accept the invitation') : { text: '{code}', html: `<span style="${CODE}">{code}</span>` },
  note: "This invitation is yours alone, so please don't forward it.",
})

function ourLetter(kind: EventKind, hasInviteLink: boolean): Letter {
  const letter: Words = { joined: welcome, invited: invitation(hasInviteLink), confirmation }[kind]
  const { subject, headline, greeting, words, action, note } = letter
  const parts = [greeting, headline, words, action?.text, note, 'Unsubscribe: {unsubscribe}']
  return { subject, text: `${parts.filter(part => part !== undefined).join('\n\n')}\n`, html: htmlOf(letter) }
}

/** Styles are attributes, since some programs drop style sheets; text takes the program's colours, light and dark. */
function htmlOf({ headline, greeting, words, action, note }: Words): string {
  const paragraph = (content: string, style = 'margin: 0 0 16px') => `<p style="${style}">${content}</p>`
  const parts = [
    paragraph('{service}', SMALL),
    `<h1 style="margin: 0 0 24px; font-size: 26px; line-height: 1.25">${headline}</h1>`,
    ...(greeting === undefined ? [] : [paragraph(greeting)]),
    paragraph(words),
    ...(action === undefined ? [] : [paragraph(action.html, 'margin: 28px 0')]),
    paragraph(note, `${SMALL}; padding-top: 16px; border-top: 1px solid #999`),
    paragraph('<a href="{unsubscribe}" style="color: inherit">Unsubscribe</a>', SMALL),
  ]
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<title>{service}</title>
</head>
<body style="margin: 0; padding: 32px 24px; font: 16px/1.5 -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif; overflow-wrap: anywhere">
<main style="display: block; max-width: 520px; margin: 0 auto">
${parts.join('\n')}
</main>
</body>
</html>
`
}
