/** Text of strangers, such as the name of a source, in as many cells as it has room for. */

/** What takes two columns (Unicode Standard Annex #11, W and F). */
const wide =
  /[\uFE0F\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u

const segmenter = new Intl.Segmenter('en')

const cellsOf = (segment: string): number => (wide.test(segment) ? 2 : 1)

/**
 * One line that controls nothing: neither a terminal nor the order of letters. The two joiners are part of how names are
 * spelt.
 */
export const plain = (text: string): string =>
  text.toWellFormed().replaceAll(/(?:[\p{Cc}\s]|(?![\u200C\u200D])\p{Cf})+/gu, ' ')

/** How many cells of a terminal it takes. */
export const cells = (text: string): number =>
  /^[\x20-\x7e]*$/.test(text)
    ? text.length
    : [...segmenter.segment(text)].reduce((sum, { segment }) => sum + cellsOf(segment), 0)

/** Filled up with spaces behind. */
export const padded = (text: string, room: number): string => text + ' '.repeat(Math.max(0, room - cells(text)))
