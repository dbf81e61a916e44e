import { readFileSync } from 'node:fs'

/** One version of CHANGELOG.md, the newest first. */
export interface Part {
  readonly version: string
  /** `2026-11-23`, or `unreleased`. */
  readonly date: string
  /** Markdown, without the heading. */
  readonly notes: string
}

export const parts = (text = readFileSync(new URL('../../CHANGELOG.md', import.meta.url), 'utf8')): readonly Part[] =>
  text
    .split(/^(?=## )/m)
    .slice(1)
    .map(part => {
      const [, version, date, notes] = /^## \[(\d+\.\d+\.\d+)\] - (unreleased|\d{4}-\d\d-\d\d)\n(.*)$/s.exec(part) ?? []
      if (version === undefined) throw new Error(`CHANGELOG.md: not "## [1.2.3] - 2026-12-31": ${part.split('\n')[0]}`)
      return { version, date: date!, notes: notes!.trim() }
    })

/** Whether users may have it: its migrations and its database of test/fixtures/released/ stay as they are. */
export const isReleased = (version: string): boolean =>
  parts().some(part => part.version === version && part.date !== 'unreleased')
