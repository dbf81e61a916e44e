/** For a report: one line, in which no character is obeyed by a terminal. */
export const printable = (text: string): string =>
  JSON.stringify(text)
    .slice(1, -1)
    .replace(/[^ -~]/g, character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
