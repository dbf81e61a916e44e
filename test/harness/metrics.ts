import assert from 'node:assert/strict'

/** One line of the metrics. */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface Scraped {
  readonly text: string
  readonly samples: readonly Sample[]
  /** The value of the one sample with this name and these labels; undefined: there is none. */
  value(name: string, labels?: Sample['labels']): number | undefined
  /** The sum of all samples with this name and these labels among theirs. */
  sum(name: string, labels?: Sample['labels']): number
}

/** Asks for the metrics, and reads them strictly. */
export async function scrape(adminOrigin: string | null): Promise<Scraped> {
  const response = await fetch(`${adminOrigin}/metrics`)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  return read(await response.text())
}

/** The text format of Prometheus, version 0.0.4. What is not allowed there fails. */
export function read(text: string): Scraped {
  const types = new Map<string, string>()
  const samples: Sample[] = []
  for (const line of text.split('\n').filter(line => line !== '' && !line.startsWith('# HELP '))) {
    const [, name, type] = /^# TYPE ([a-z_]+) (counter|gauge|histogram)$/.exec(line) ?? []
    if (name !== undefined) {
      assert.ok(!types.has(name), `${name} comes twice`)
      types.set(name, type!)
    } else samples.push(sampleIn(line))
  }
  const keys = samples.map(({ name, labels }) => JSON.stringify([name, labels]))
  assert.equal(new Set(keys).size, keys.length, 'a series comes twice')
  for (const { name } of samples) {
    const base = name.replace(/_(?:bucket|sum|count)$/, '')
    assert.ok(types.has(name) || types.get(base) === 'histogram', `${name} has no type`)
  }
  const among = (of: Sample['labels'], labels: Sample['labels']) =>
    Object.entries(labels).every(([label, value]) => of[label] === value)
  return {
    text,
    samples,
    value: (name, labels = {}) =>
      samples.find(
        each =>
          each.name === name &&
          among(each.labels, labels) &&
          Object.keys(each.labels).length === Object.keys(labels).length,
      )?.value,
    sum: (name, labels = {}) =>
      samples
        .filter(each => each.name === name && among(each.labels, labels))
        .reduce((sum, { value }) => sum + value, 0),
  }
}

function sampleIn(line: string): Sample {
  const [, name, labels = '', value] =
    /^([a-z_]+)(?:\{((?:[a-z_]+="[^"\\]*",?)+)\})? (-?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?))$/.exec(line) ?? []
  assert.ok(name !== undefined && value !== undefined, `not a sample: ${line}`)
  const pairs = [...labels.matchAll(/([a-z_]+)="([^"\\]*)"/g)].map(([, label, text]) => [label, text])
  return { name, labels: Object.fromEntries(pairs), value: Number(value) }
}
