import { readFileSync, statSync } from 'node:fs'
import MailComposer from 'nodemailer/lib/mail-composer'
import type { Addressee } from '../confirm/store.ts'
import type { Links } from '../confirm/token.ts'
import { escapeHtml } from '../pages/html.ts'
import type { EventKind } from '../signup/contact.ts'
import { OperatorError } from '../waitlist/ports/log.ts'
import type { Letter, Mailbox, MailSettings } from './mail-settings.ts'
import { oneLine, unlinked } from './names.ts'
import { filled, inHeader, isLink, listed, placeholders, unknownPlaceholder } from './placeholders.ts'

/** Whom a mail is for, and what it tells. */
export interface Recipient {
  readonly kind: EventKind
  /** Of the mail: letters, digits, dashes and underscores, and no other mail's. */
  readonly id: string
  /** Whose it is. */
  readonly addressee: Addressee
  readonly name: string
  readonly email: string
  /** Of an invitation. */
  readonly code?: string | undefined
}

const WORD_JOINER = '\u2060'
/** Bytes of a template. */
const LARGEST_FILE = 256 * 1024

/**
 * Returns a function that makes all bytes of one mail, whatever the name is. `links`: what each contact's mails have in them;
 * null: no mail has any.
 *
 * @throws {OperatorError} when a template cannot be read, has a placeholder that does not exist, or lacks one that it needs.
 */
export function mailWriter(
  { from, letters, inviteLink, service }: Pick<MailSettings, 'from' | 'letters' | 'inviteLink' | 'service'>,
  links: (() => Links) | null,
) {
  const templates = {
    joined: readLetter('joined'),
    invited: readLetter('invited'),
    confirmation: readLetter('confirmation'),
  }

  function readLetter(kind: EventKind) {
    const { subject, ...files }: Letter = letters[kind]
    // Nobody is asked without links, so what was written for them may stay where it is.
    const { textFile, htmlFile } =
      kind === 'confirmation' && links === null ? { textFile: null, htmlFile: null } : files
    const lacking = { link: kind === 'invited' && inviteLink === null, unsubscribe: links === null }
    const known = placeholders[kind].filter(name => !(isLink(name) && lacking[name]))
    const needed = known.filter(name => name === 'unsubscribe' || (kind === 'confirmation' && name === 'link'))
    const ours = ownLetter(kind, inviteLink !== null, links !== null)
    const read = (format: 'TEXT' | 'HTML', file: string) =>
      readTemplate(`${SETTINGS[kind]}_${format}_FILE`, file, kind, known, needed)
    const text = textFile === null ? ours.text : read('TEXT', textFile)
    const html = htmlFile !== null ? read('HTML', htmlFile) : textFile === null ? ours.html : null
    return { subject, text, html }
  }

  return async ({ kind, id, addressee, name: typed, email, code }: Recipient): Promise<Buffer> => {
    const { subject, text, html } = templates[kind]
    const name = unlinked(oneLine(typed), WORD_JOINER)
    const { confirm, unsubscribe } = links?.() ?? {}
    const values = {
      ...{ name, email, service, code },
      link: kind === 'confirmation' ? confirm?.(addressee) : code && inviteLink?.replace('{code}', code),
      unsubscribe: unsubscribe?.(addressee),
    }
    const asItIs = (value: string): string => value
    return bytesOf({
      ...{ id, from },
      to: { name, address: email },
      subject: filled(subject, values, asItIs),
      text: filled(text, values, asItIs),
      ...(html === null ? {} : { html: filled(html, values, escapeHtml) }),
      unsubscribe: values.unsubscribe,
    })
  }
}

/** What the names of its files begin with. */
const SETTINGS: Readonly<Record<EventKind, string>> = { joined: 'MAIL', invited: 'INVITE', confirmation: 'CONFIRM' }

/** What a mail says, whatever its texts are. */
interface Content {
  /** As of `Recipient`. */
  readonly id: string
  readonly from: Mailbox
  readonly to: Mailbox
  readonly subject: string
  readonly text: string
  readonly html?: string
  /** The address at which its reader unsubscribes. */
  readonly unsubscribe?: string | undefined
}

/** All bytes of one mail (RFC 5322); lines end as SMTP has them. */
export function bytesOf({ id, from, to, subject, text, html, unsubscribe }: Content): Promise<Buffer> {
  const composer = new MailComposer({
    from: { name: inHeader(from.name), address: from.address },
    to: { name: inHeader(to.name), address: to.address },
    subject: inHeader(subject),
    text,
    ...(html === undefined ? {} : { html }),
    messageId: `<${id}@${from.address.slice(from.address.indexOf('@') + 1)}>`,
    date: new Date(),
    headers: {
      // RFC 3834 §5: so that nobody's holiday notice answers it.
      'Auto-Submitted': 'auto-generated',
      // RFC 2369 §3.2, RFC 8058 §3.1
      ...(unsubscribe !== undefined && {
        'List-Unsubscribe': `<${unsubscribe}>`,
        'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
      }),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}

/** @throws {OperatorError} */
function readTemplate(
  setting: string,
  path: string,
  kind: EventKind,
  known: readonly string[],
  needed: readonly string[],
): string {
  const wrong = (why: string) => new OperatorError(`${setting}: ${path} ${why}`)
  let bytes: Buffer
  try {
    const stats = statSync(path)
    if (!stats.isFile()) throw new Error('it is not a file')
    if (stats.size > LARGEST_FILE) throw new Error(`it has ${stats.size} bytes, and ${LARGEST_FILE} are allowed`)
    bytes = readFileSync(path)
  } catch (error) {
    throw wrong(`cannot be used: ${(error as Error).message}`)
  }
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw wrong('is not UTF-8')
  }
  const unknown = unknownPlaceholder(text, known)
  if (unknown === '{unsubscribe}') throw wrong('has {unsubscribe}, but CONFIRM=mail is not set')
  if (unknown === '{link}' && kind === 'invited') throw wrong('has {link}, but INVITE_LINK is not set')
  if (unknown !== undefined) throw wrong(`has ${unknown}, but the placeholders are ${listed(known)}`)
  if (text.trim() === '') throw wrong('is empty')
  const missing = needed.find(name => !text.includes(`{${name}}`))
  if (missing !== undefined) throw wrong(`lacks {${missing}}, which this mail needs with CONFIRM=mail`)
  return text
}

/** The letters that are sent unless the owner has written others: the same words as text and as HTML. */
interface OwnLetter {
  readonly words: readonly string[]
  /** Where its reader goes, on a line of its own. */
  readonly link?: string
  /** What HTML shows in the place of a long address. */
  readonly button?: string
  readonly note: string
}

const WELCOME: OwnLetter = {
  words: [
    'Hello {name},',
    'Thank you for signing up at {service}. You are on the waitlist, and there is nothing else to do.',
  ],
  note: 'If it was not you who signed up, somebody mistyped an address, and you can ignore this mail.',
}

const INVITED = 'you were on the waitlist of {service}, and now it is your turn:'
const ONLY_YOURS = 'It is for you alone. If it was not you who signed up, you can ignore this mail.'
const INVITATION: OwnLetter = {
  words: ['Hello {name},', `${INVITED} this is your invitation.`],
  link: '{link}',
  note: ONLY_YOURS,
}
const INVITATION_WITHOUT_LINK: OwnLetter = {
  words: ['Hello {name},', `${INVITED} your code is {code}.`],
  note: ONLY_YOURS,
}

const CONFIRMATION: OwnLetter = {
  words: ['Hello {name},', 'somebody signed up at {service} with this address. If it was you, please confirm it:'],
  link: '{link}',
  button: 'Confirm this address',
  note: 'If it was not you, you can ignore this mail: without a confirmation, the address is deleted.',
}

const UNSUBSCRIBE = 'Unsubscribe'

function ownLetter(
  kind: EventKind,
  hasLink: boolean,
  isListMail: boolean,
): { readonly text: string; readonly html: string } {
  const invitation = hasLink ? INVITATION : INVITATION_WITHOUT_LINK
  const letter = { joined: WELCOME, invited: invitation, confirmation: CONFIRMATION }[kind]
  const { words, link, note } = letter
  const parts = [
    ...words,
    ...(link === undefined ? [] : [link]),
    note,
    ...(isListMail ? [`${UNSUBSCRIBE}: {unsubscribe}`] : []),
  ]
  return { text: `${parts.join('\n\n')}\n`, html: htmlOf(letter, isListMail) }
}

const BUTTON =
  'display: inline-block; padding: 12px 24px; border-radius: 8px; background: #3547c8; color: #fff; font-weight: 600; text-decoration: none'

const paragraph = (words: string, style = ''): string => `<p style="margin: 0 0 16px${style}">${words}</p>`

/**
 * Text has the colours of the mail program, in light and dark. The style is in attributes, since some programs drop a
 * style sheet. What looks like a telephone number or a date is no link.
 */
const htmlOf = ({ words, link, button, note }: OwnLetter, isListMail: boolean): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no, url=no">
<title>{service}</title>
</head>
<body style="margin: 0; padding: 32px 24px; font: 16px/1.5 -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif; overflow-wrap: anywhere">
<main style="display: block; max-width: 560px; margin: 0 auto">
<h1 style="margin: 0 0 24px; font-size: 20px; line-height: 1.3">{service}</h1>
${[...words, ...(link === undefined ? [] : [`<a href="${link}" style="${button === undefined ? 'color: inherit' : BUTTON}">${button ?? link}</a>`])].map(each => paragraph(each)).join('\n')}
${paragraph(note, '; margin-top: 24px; padding-top: 16px; border-top: 1px solid #999; font-size: 14px; opacity: 0.75')}${isListMail ? `\n${paragraph(`<a href="{unsubscribe}" style="color: inherit">${UNSUBSCRIBE}</a>`, '; font-size: 14px; opacity: 0.75')}` : ''}
</main>
</body>
</html>
`
