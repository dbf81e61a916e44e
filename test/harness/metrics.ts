import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'

/** One line of the metrics. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Scraped {
  readonly text: string
  readonly samples: readonly Sample[]
  /** The value of the one sample with this name and exactly these labels; undefined: there is none. */
  value(name: string, labels?: Sample['labels']): number | undefined
  /** The sum of all samples with this name. */
  sum(name: string): number
}

/** Asks for the metrics; promtool judges their format elsewhere. */
export async function scrape(adminOrigin: string | null): Promise<Scraped> {
  const response = await fetch(`${adminOrigin}/metrics`)
  assert.equal(response.status, 200)
  const text = await response.text()
  const samples = text.split('\n').flatMap(line => {
    const [, name, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (name === undefined) return []
    const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label, text])
    return [{ name, labels: Object.fromEntries(pairs), value: Number(value) }]
  })
  const named = (name: string) => samples.filter(each => each.name === name)
  const key = (labels: Sample['labels']) => JSON.stringify(Object.entries(labels).sort())
  return {
    text,
    samples,
    value: (name, labels = {}) => named(name).find(each => key(each.labels) === key(labels))?.value,
    sum: name => named(name).reduce((sum, { value }) => sum + value, 0),
  }
}

/** The tool of Prometheus that checks metrics and rules; undefined: it is not installed. */
export const promtool = isInstalled() ? 'promtool' : undefined
export const noPromtool = 'promtool is not installed; .ci/run installs it with prometheus'

function isInstalled(): boolean {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
