/** Names as messages have them: a stranger may have chosen one. */

/** What a web or mail address needs, each with what browsers take for the same (UTS #46). */
const JOINTS = /[.\u2024\u3002\uFE12\uFE52\uFF0E\uFF61:\uFE13\uFE55\uFF1A/\uFF0F@\uFE6B\uFF20](?=\S)/gu

/** Text that no program makes a link or a mention of. `joiner` is invisible, and follows whatever an address needs. */
export const unlinked = (text: string, joiner: string): string => text.replaceAll(JOINTS, `$&${joiner}`)

/** Without the characters that would show what follows backwards. */
export const undirected = (text: string): string => text.replaceAll(/\p{Bidi_Control}/gu, '')

/** Without the characters that would begin another line, too. */
export const oneLine = (text: string): string =>
  undirected(text)
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, '')
    .trim()
