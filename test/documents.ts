import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

/** Every Markdown file of the project, as a path from its root. */
export function documents(folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) return /^(node_modules|dist|data|src|\.git)$/.test(entry.name) ? [] : documents(path)
    return entry.isFile() && entry.name.endsWith('.md') ? [path] : []
  })
}

export const textOf = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The fenced blocks of a text: language, lines, and the anchor of the heading `##` that they stand under. */
export function blocksOf(text: string): { language: string; lines: string[]; under: string }[] {
  const blocks: { language: string; lines: string[]; under: string }[] = []
  let under = ''
  let open: { language: string; lines: string[]; under: string } | null = null
  for (const line of text.split('\n')) {
    const [, language] = /^\s*```(.*)$/.exec(line) ?? []
    if (open !== null) {
      if (language === undefined) open.lines.push(line.trim())
      else open = null
    } else if (language !== undefined) {
      open = { language, lines: [], under }
      blocks.push(open)
    } else if (line.startsWith('## ')) under = anchorOf(line.slice(3))
  }
  return blocks
}

const withoutBlocks = (text: string): string => text.replaceAll(/^\s*```.*?^\s*```$/gms, '')

/** The links and pictures of a document that are part of the project: as they stand there, and the file from its root. */
export function linksIn(path: string): { target: string; found: string; anchor: string | undefined }[] {
  const prose = withoutBlocks(textOf(path)).replaceAll(/`[^`\n]*`/g, '`')
  const targets = [
    ...prose.matchAll(/\]\(<?([^)\s>]+)>?(?: "[^"]*")?\)/g),
    ...prose.matchAll(/\b(?:src|srcset|href)="([^"]+)"/g),
  ].map(([, target]) => target!)
  return targets
    .filter(target => !/^[a-z]+:/.test(target))
    .map(target => {
      const [file, anchor] = target.split('#', 2) as [string, string?]
      return { target, found: file === '' ? path : normalize(join(dirname(path), file)), anchor }
    })
}

/** The anchor that GitHub gives a heading. */
const anchorOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')

export const anchorsOf = (text: string): Set<string> =>
  new Set([...withoutBlocks(text).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading]) => anchorOf(heading!)))
