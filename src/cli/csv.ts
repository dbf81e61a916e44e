/**
 * One field of CSV (RFC 4180). Spreadsheets run text that starts like a formula, and anybody may sign up with such a name.
 * An apostrophe before it keeps it text (OWASP, "CSV Injection"); before text that looks as if that was done already, too,
 * so that `withoutApostrophe` can undo it. The JSON export is exact by itself.
 */
export function csvField(text: string): string {
  const harmless = /^'*[=+\-@＝＋－＠]/.test(text) ? `'${text}` : text
  return /[",;\t\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless
}

/** What a field of ours meant, once its quotation marks are gone. */
export const withoutApostrophe = (field: string): string => (/^'+[=+\-@＝＋－＠]/.test(field) ? field.slice(1) : field)
