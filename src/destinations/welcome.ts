/** The welcome mail that is sent unless the owner has written one: the same words as text and as HTML. */

const LETTER = [
  'Hello {name},',
  'Thank you for signing up at {service}. You are on the waitlist, and there is nothing else to do.',
]
const NOTE = 'If it was not you who signed up, somebody mistyped an address, and you can ignore this mail.'

export const WELCOME_TEXT = `${[...LETTER, NOTE].join('\n\n')}\n`

const paragraph = (words: string, style = ''): string => `<p style="margin: 0 0 16px${style}">${words}</p>`

/**
 * Text has the colours of the mail program, in light and dark. The style is in attributes, since some programs drop a
 * style sheet. What looks like a telephone number or a date is no link.
 */
export const WELCOME_HTML = `<!doctype html>
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
