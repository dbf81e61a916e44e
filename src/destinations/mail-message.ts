import { readFileSync, statSync } from 'node:fs'
import MailComposer from 'nodemailer/lib/mail-composer'
import { escapeHtml } from '../pages/html.ts'
import { OperatorError } from '../waitlist/ports/log.ts'
import type { Mailbox, MailSettings } from './mail-settings.ts'
import { undirected, unlinked } from './names.ts'
import { filled, inHeader, placeholdersAllowed, unknownPlaceholder } from './placeholders.ts'

/** Whom a mail is for. */
export interface Recipient {
  /** Of the mail: letters, digits, dashes and underscores, and no other mail's. */
  readonly id: string
  readonly name: string
  readonly email: string
}

const WORD_JOINER = '\u2060'
/** Bytes of a template. */
const LARGEST_FILE = 256 * 1024

/**
 * Returns a function that makes all bytes of one mail, whatever the name is.
 *
 * @throws {OperatorError} when a template cannot be read, or has a placeholder that does not exist.
 */
export function mailWriter({
  from,
  subject,
  textFile,
  htmlFile,
  service,
}: Pick<MailSettings, 'from' | 'subject' | 'textFile' | 'htmlFile' | 'service'>) {
  const textTemplate = textFile === null ? WELCOME_TEXT : readTemplate('MAIL_TEXT_FILE', textFile)
  const ownHtml = textFile === null ? WELCOME_HTML : null
  const htmlTemplate = htmlFile === null ? ownHtml : readTemplate('MAIL_HTML_FILE', htmlFile)

  return ({ id, name: typed, email }: Recipient): Promise<Buffer> => {
    const name = unlinked(undirected(typed), WORD_JOINER)
    const values = { name, email, service }
    const asItIs = (value: string): string => value
    return bytesOf({
      ...{ id, from },
      to: { name, address: email },
      subject: filled(subject, values, asItIs),
      text: filled(textTemplate, values, asItIs),
      ...(htmlTemplate === null ? {} : { html: filled(htmlTemplate, values, escapeHtml) }),
    })
  }
}

/** What a mail says, whatever its texts are. */
interface Content {
  /** As of `Recipient`. */
  readonly id: string
  readonly from: Mailbox
  readonly to: Mailbox
  readonly subject: string
  readonly text: string
  readonly html?: string
}

/** All bytes of one mail (RFC 5322); lines end as SMTP has them. */
export function bytesOf({ id, from, to, subject, text, html }: Content): Promise<Buffer> {
  const composer = new MailComposer({
    from: { name: inHeader(from.name), address: from.address },
    to: { name: inHeader(to.name), address: to.address },
    subject: inHeader(subject),
    text,
    ...(html === undefined ? {} : { html }),
    messageId: `<${id}@${from.address.slice(from.address.indexOf('@') + 1)}>`,
    date: new Date(),
    // RFC 3834 §5: so that nobody's holiday notice answers it.
    headers: { 'Auto-Submitted': 'auto-generated' },
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return composer.compile().build()
}

/** @throws {OperatorError} */
function readTemplate(setting: string, path: string): string {
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
  const unknown = unknownPlaceholder(text)
  if (unknown !== undefined) throw wrong(`has ${unknown}, but the placeholders are ${placeholdersAllowed}`)
  if (text.trim() === '') throw wrong('is empty')
  return text
}

/** The welcome mail that is sent unless the owner has written one: the same words as text and as HTML. */

const LETTER = [
  'Hello {name},',
  'Thank you for signing up at {service}. You are on the waitlist, and there is nothing else to do.',
]
const NOTE = 'If it was not you who signed up, somebody mistyped an address, and you can ignore this mail.'

const WELCOME_TEXT = `${[...LETTER, NOTE].join('\n\n')}\n`

const paragraph = (words: string, style = ''): string => `<p style="margin: 0 0 16px${style}">${words}</p>`

/**
 * Text has the colours of the mail program, in light and dark. The style is in attributes, since some programs drop a
 * style sheet. What looks like a telephone number or a date is no link.
 */
const WELCOME_HTML = `<!doctype html>
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
${LETTER.map(words => paragraph(words)).join('\n')}
${paragraph(NOTE, '; margin-top: 24px; padding-top: 16px; border-top: 1px solid #999; font-size: 14px; opacity: 0.75')}
</main>
</body>
</html>
`
