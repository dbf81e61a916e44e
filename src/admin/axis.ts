import type { Bar } from '../waitlist/alerts/counts.ts'

/** What each bar stands for. */
export type Unit = 'minute' | 'hour' | 'day'

const grouped = new Intl.NumberFormat('en')
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })

/** With separators of thousands. */
export const whole = (count: number): string => grouped.format(count)

/** In the width of an axis: 9,999, then 10K and 1.2M. */
export const short = (count: number): string => (count < 10_000 ? whole(count) : compact.format(count))

/** Milliseconds for people: 119 s, 119 min, 47 h, then days. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1_000))
  if (seconds < 120) return `${seconds} s`
  if (seconds < 2 * 3_600) return `${Math.floor(seconds / 60)} min`
  return seconds < 2 * 86_400 ? `${Math.floor(seconds / 3_600)} h` : `${whole(Math.floor(seconds / 86_400))} days`
}

/** Round numbers from 0 to the first one that is not below `most`; about as many as asked for, at least two. */
export function ticks(most: number, about: number): number[] {
  const rough = Math.max(1, most / about)
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map(factor => factor * power).find(step => step >= rough)!
  return Array.from({ length: Math.max(1, Math.ceil(most / step)) + 1 }, (_, i) => i * step)
}

/** A bar that the axis of time names. */
export interface Mark {
  readonly index: number
  readonly text: string
}

const month = (time: Date): string => time.toLocaleString('en', { month: 'short' })
const clock = (time: Date): string => time.toLocaleTimeString('en-GB', { timeStyle: 'short' })

/** Round times by the clock on the wall: quarters of an hour, quarters of a day, Mondays. */
export function marks(bars: readonly Bar[], unit: Unit): Mark[] {
  return bars.flatMap(({ from }, index) => {
    const date = `${from.getDate()} ${month(from)}`
    if (unit === 'day') return from.getDay() === 1 ? [{ index, text: date }] : []
    if (unit === 'minute') return from.getMinutes() % 15 === 0 ? [{ index, text: clock(from) }] : []
    if (from.getHours() % 6 !== 0) return []
    return [{ index, text: from.getHours() === 0 ? date : clock(from) }]
  })
}

/** When a bar is, in full. */
export function moment({ from }: Bar, unit: Unit): string {
  const date = `${from.toLocaleString('en', { weekday: 'short' })} ${from.getDate()} ${month(from)}`
  return unit === 'day' ? date : `${date}, ${clock(from)}`
}
