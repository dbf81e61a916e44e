import { dot, type TestEvent } from 'node:test/reporters'

const COUNT = /^(tests|pass|fail|cancelled|skipped|duration_ms) /

// Dots to a line where there is no terminal.
process.stdout.columns ??= 100

/** Prints a dot for each test, then what failed, with the output of its file, why tests were skipped, and the counts. */
export default async function* reporter(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const counts: string[] = []
  const skipped = new Map<string, number>()
  const output = new Map<string, string>()
  const failed = new Set<string>()

  async function* noted() {
    for await (const event of events) {
      const { type, data } = event
      if (type === 'test:fail') failed.add(data.file ?? '')
      if (type === 'test:pass' && typeof data.skip === 'string')
        skipped.set(data.skip, (skipped.get(data.skip) ?? 0) + 1)
      if (type === 'test:diagnostic' || type === 'test:stdout' || type === 'test:stderr') {
        if (type === 'test:diagnostic' && data.file === undefined && COUNT.test(data.message)) counts.push(data.message)
        else output.set(data.file ?? '', `${output.get(data.file ?? '') ?? ''}${data.message.trimEnd()}\n`)
      }
      yield event
    }
  }
  yield* dot(noted())
  yield '\n'
  for (const [file, text] of output) if (failed.has(file)) yield `${file} printed:\n${text}`
  for (const [why, count] of skipped) yield `ℹ ${count} skipped: ${why}\n`
  yield `ℹ ${counts.join(', ')}\n`
}
