/** How the arguments and options of commands are read. */

import { InvalidArgumentError } from 'commander'
import { isEmail } from '../signup/contact.ts'
import { LISTING_MAX, number, timeOf } from './output.ts'

export function wholeNumber(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.')
  return Number(text)
}

/** How many records a listing has. */
export function listed(text: string): number {
  const count = wholeNumber(text)
  if (count > LISTING_MAX)
    throw new InvalidArgumentError(`At most ${number(LISTING_MAX)}; waitlist export has no limit.`)
  return count
}

/** A part of an address or a name. An empty one would be in each of them. */
export function part(text: string): string {
  if (text === '') throw new InvalidArgumentError('It must not be empty.')
  return text
}

/** A point in time: an ISO 8601 date or time, in UTC unless it has an offset, or so many hours or days ago. */
export function moment(text: string): Date {
  const [, count, unit] = /^(\d{1,6})([hd])$/.exec(text) ?? []
  const ago = Number(count) * (unit === 'h' ? 3_600_000 : 86_400_000)
  const time = count === undefined ? timeOf(text) : Date.now() - ago
  if (Number.isNaN(time)) {
    throw new InvalidArgumentError('It must be a time such as 2026-11-22, 2026-11-22T09:30Z, 24h or 7d.')
  }
  return new Date(time)
}

export function mapping(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, member, column] = /^(\w+)=(.+)$/s.exec(text) ?? []
  if (member === undefined || column === undefined) throw new InvalidArgumentError('It must be member=column.')
  return { ...before, [member]: column }
}

export function mailAddress(text: string): string {
  if (!isEmail(text)) throw new InvalidArgumentError('It must be an email address.')
  return text
}

/** What can be repeated. */
export const several =
  <T>(read: (text: string) => T) =>
  (text: string, before: readonly T[] = []): readonly T[] => [...before, read(text)]
