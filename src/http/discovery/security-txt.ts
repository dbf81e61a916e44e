import { paths } from '../paths.ts'

const DAY = 86_400_000

/** RFC 9116 §2.5.5 recommends less than a year: who finds an old copy should not trust it. */
const VALID = 180 * DAY

/** The day of a time, in UTC: what the text says changes when this does. */
export const dayOf = (time: number): number => Math.floor(time / DAY)

/**
 * Where a vulnerability of this installation is reported (RFC 9116). `contacts`: in order of preference; `day`: today's.
 * An address of plain HTTP cannot be named as canonical (§2.5.2), so that line is left out.
 */
export const securityTxt = (contacts: readonly string[], base: string, day: number): string =>
  [
    ...contacts.map(contact => `Contact: ${contact}`),
    `Expires: ${new Date(day * DAY + VALID).toISOString()}`,
    ...(base.startsWith('https:') ? [`Canonical: ${base}${paths.security}`] : []),
    '',
  ].join('\n')
