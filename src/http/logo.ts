import { readFileSync, statSync } from 'node:fs'
import { OperatorError } from '../waitlist/ports.ts'

/** A picture that stands beside the name on the documentation page. */
export interface Logo {
  /** The whole picture, as a `data:` URL: as an image, an SVG can neither run a script nor load anything. */
  readonly url: string
  /** Its width divided by its height. */
  readonly ratio: number
}

/** Bytes. The picture travels with each copy of the page. */
const LARGEST = 32 * 1024

/**
 * Reads an SVG or PNG picture.
 *
 * @throws {OperatorError} when there is none, or it is too large.
 */
export function readLogo(path: string): Logo {
  const wrong = (why: string) => new OperatorError(`LOGO_FILE: ${path} ${why}`)
  let bytes: Buffer
  try {
    // Before it is read: a device has no size, and perhaps no end.
    const stats = statSync(path)
    if (!stats.isFile()) throw wrong('is not a file')
    if (stats.size > LARGEST) throw wrong(`is larger than ${LARGEST / 1024} KiB`)
    bytes = readFileSync(path)
  } catch (error) {
    throw error instanceof OperatorError ? error : wrong(`cannot be read: ${(error as Error).message}`)
  }
  const found = pngSize(bytes) ?? svgSize(bytes.toString('utf8'))
  if (found === undefined) throw wrong('is neither a PNG picture nor an SVG with a viewBox, or a width and a height')
  const { type, width, height } = found
  return { url: `data:${type};base64,${bytes.toString('base64')}`, ratio: width / height }
}

interface Size {
  readonly type: string
  readonly width: number
  readonly height: number
}

/** PNG (third edition) §5.2 and §11.2.1: the signature, then the header with both as 32 bits. */
function pngSize(bytes: Buffer): Size | undefined {
  if (bytes.length < 24 || bytes.toString('latin1', 0, 8) !== '\x89PNG\r\n\x1a\n') return undefined
  return sized('image/png', bytes.readUInt32BE(16), bytes.readUInt32BE(20))
}

/** SVG 2 §8.2: the proportions of the viewBox, or else of the width and the height. */
function svgSize(text: string): Size | undefined {
  const [tag] = /<svg\s[^>]*>/.exec(text) ?? ['']
  const attribute = (name: string) => new RegExp(`\\s${name}\\s*=\\s*["']([^"']*)["']`).exec(tag)?.[1]
  const [, , width, height] = attribute('viewBox')
    ?.trim()
    .split(/[\s,]+/) ?? [0, 0, attribute('width'), attribute('height')]
  return sized('image/svg+xml', Number.parseFloat(String(width)), Number.parseFloat(String(height)))
}

const sized = (type: string, width: number, height: number): Size | undefined =>
  width > 0 && height > 0 && Number.isFinite(width / height) ? { type, width, height } : undefined
