/** Names as messages have them: a stranger may have chosen one. */

/** Text that no program makes a link or a mention of. `joiner` is invisible, and follows whatever an address needs. */
export const unlinked = (text: string, joiner: string): string => text.replaceAll(/[.:/@](?=\S)/g, `$&${joiner}`)

/** Without the characters that would begin another line, or show what follows backwards. */
export const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '').trim()
