import type { Logo } from '../../logo.ts'

/** What an operator may choose of the page's looks. Null: its own. */
export interface Brand {
  /** `#rrggbb`. */
  readonly brandColor: string | null
  readonly logo: Logo | null
}

/**
 * The page in the operator's colour. Where it would be too faint to read, it is darkened (light theme) or lightened (dark
 * theme) by as much as is needed (WCAG 2.2, 1.4.3 and 1.4.11): 4.5 for text, 3 for areas.
 */

type Rgb = readonly [red: number, green: number, blue: number]

const rgbOf = (hex: string): Rgb => [1, 3, 5].map(at => Number.parseInt(hex.slice(at, at + 2), 16)) as unknown as Rgb

const hexOf = (colour: Rgb): string =>
  `#${colour.map(value => Math.round(value).toString(16).padStart(2, '0')).join('')}`

/** WCAG 2.2, relative luminance. */
function luminance(hex: string): number {
  const [red, green, blue] = rgbOf(hex).map(value => {
    const part = value / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  }) as unknown as Rgb
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/** WCAG 2.2, contrast ratio: 1 to 21. */
export function contrast(one: string, other: string): number {
  const [darker, lighter] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number]
  return (lighter + 0.05) / (darker + 0.05)
}

/** Text that can be read on a colour: one of both always can. */
export const onColour = (colour: string): string => (contrast(colour, '#ffffff') >= 4.5 ? '#ffffff' : '#000000')

/** So much of the second colour in the first. */
const mixed = (one: string, other: string, share: number): string =>
  hexOf(rgbOf(one).map((value, at) => value + (rgbOf(other)[at]! - value) * share) as unknown as Rgb)

const steps = Array.from({ length: 51 }, (_, step) => step / 50)

/** The values of a token in the style, for light and for dark. */
export const tokenOf = (style: string, name: string): readonly [light: string, dark: string] =>
  (new RegExp(`--${name}:\\s*light-dark\\((#\\w{6}),\\s*(#\\w{6})\\)`).exec(style) ?? []).slice(1, 3) as never

/** The tokens of the style that follow from a colour, which is `#rrggbb`; to be appended to the style. */
export function brandStyle(style: string, colour: string): string {
  const [page, surface, muted] = ['page', 'surface', 'muted'].map(name => tokenOf(style, name))
  const theme = (theme: 0 | 1): Record<string, string> => {
    const ground = page![theme]!
    const strongest = theme === 0 ? '#000000' : '#ffffff'
    // As much of it as leaves the faintest text legible.
    const soft = steps
      .map(step => mixed(ground, colour, (1 - step) * (theme === 0 ? 0.1 : 0.25)))
      .find(soft => contrast(soft, muted![theme]!) >= 4.5)!
    const grounds = [ground, surface![theme]!, soft]
    const accent = steps
      .map(step => mixed(colour, strongest, step))
      .find(accent => grounds.every(each => contrast(accent, each) >= 4.5))!
    const fill = contrast(colour, ground) >= 3 ? colour : accent
    return { accent, 'accent-soft': soft, fill, 'on-fill': onColour(fill) }
  }
  const [light, dark] = [theme(0), theme(1)]
  return `:root{${Object.keys(light)
    .map(name => `--${name}:light-dark(${light[name]},${dark[name]})`)
    .join(';')}}`
}
