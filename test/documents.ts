import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * Which test types the commands of a document, or of one of its parts (`document#anchor` of a heading `##`). The lines of
 * those that are given to test/docs.commands.test.ts are typed there as they stand; the other tests have scenes of their own.
 */
export const typedBy: Readonly<Record<string, string>> = {
  'README.md': 'test/readme.test.ts',
  'CONTRIBUTING.md': 'test/docs.commands.test.ts',
  'docs/start.md#1-run-it': 'test/docs.commands.test.ts',
  'docs/start.md#2-sign-somebody-up': 'test/docs.commands.test.ts',
  'docs/start.md#3-see-your-list': 'test/docs.commands.test.ts',
  'docs/start.md#4-put-a-form-on-your-page': 'test/form/start.test.ts',
  'docs/deploy.md#which-way': 'test/docs.commands.test.ts',
  'docs/deploy.md#with-docker': 'test/deploy/docker.test.ts',
  'docs/deploy.md#with-systemd': 'test/deploy/commands.test.ts',
  'docs/deploy.md#behind-caddy': 'test/deploy/commands.test.ts',
  'docs/deploy.md#behind-nginx': 'test/deploy/commands.test.ts',
  'docs/deploy.md#as-an-npm-package': 'test/deploy/package.test.ts',
  'docs/deploy.md#from-a-clone': 'test/deploy/package.test.ts',
  'docs/deploy.md#as-a-single-executable': 'test/deploy/executable.test.ts',
  'docs/deploy.md#backups': 'test/docs.commands.test.ts',
  'docs/deploy.md#upgrades': 'test/docs.commands.test.ts',
  'docs/deploy.md#monitoring': 'test/docs.commands.test.ts',
  'docs/platforms.md': 'test/deploy/platforms.test.ts',
  'docs/commands.md': 'test/docs.commands.test.ts',
  'docs/privacy.md': 'test/docs.commands.test.ts',
  'docs/troubleshooting.md': 'test/docs.commands.test.ts',
  'docs/bots.md': 'test/docs.scenes.test.ts',
  'docs/importing.md': 'test/docs.scenes.test.ts',
  'docs/confirming.md': 'test/docs.confirming.test.ts',
  'docs/inviting.md': 'test/docs.inviting.test.ts',
  'docs/moving.md': 'test/docs.scenes.test.ts',
  'docs/providers.md': 'test/docs.providers.test.ts',
  'docs/litestream.md': 'test/deploy/litestream.test.ts',
  'docs/events.md': 'test/destinations/documentation.test.ts',
  'docs/engineering/performance.md#how-to-measure': 'test/bench.test.ts',
  'docs/engineering/performance.md#what-stands-in-the-way': 'test/docs.commands.test.ts',
  'docs/engineering/releasing.md': 'test/deploy/release.test.ts',
  'docs/engineering/scaling.md': 'test/bench.test.ts',
  'torture/README.md': 'test/torture.test.ts',
}

/** Every Markdown file of the project, as a path from its root. */
export function documents(folder = ''): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap(entry => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (entry.isDirectory()) return /^(node_modules|dist|data|\.git)$/.test(entry.name) ? [] : documents(path)
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

/** A text without its code, of blocks and of lines. */
export const proseOf = (text: string): string =>
  text.replaceAll(/^\s*```.*?^\s*```$/gms, '').replaceAll(/`[^`\n]*`/g, '`')

/** The links and pictures of a document that are part of the project: as they stand there, and the file from its root. */
export function linksIn(path: string): { target: string; found: string; anchor: string | undefined }[] {
  const prose = proseOf(textOf(path))
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
export const anchorOf = (heading: string): string =>
  heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-')

/** The anchors of a document. A heading that is there before gets a number. */
export function anchorsOf(text: string): Set<string> {
  const anchors = new Set<string>()
  for (const [, heading] of text.replaceAll(/^\s*```.*?^\s*```$/gms, '').matchAll(/^#{1,6} (.*)$/gm)) {
    const anchor = anchorOf(heading!)
    let unique = anchor
    for (let i = 1; anchors.has(unique); i++) unique = `${anchor}-${i}`
    anchors.add(unique)
  }
  return anchors
}
