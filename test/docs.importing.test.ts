import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { guessedColumns } from '../src/cli/import/contacts.ts'
import { temporaryFolder } from './harness/folder.ts'
import { isSlow } from './harness/slow.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const text = readFileSync(join(root, 'docs', 'importing.md'), 'utf8')

test('every command works as it stands there', { timeout: 120_000, skip: !isSlow && 'it runs in .ci/run' }, async t => {
  const cwd = temporaryFolder(t)
  for (const each of ['package.json', 'bin', 'src', 'node_modules']) symlinkSync(join(root, each), join(cwd, each))
  const path = join(cwd, 'data', 'waitlist.db')
  writeFileSync(join(cwd, 'subscribers.csv'), 'Email Address,First Name,Last Name\nada@example.com,Ada,Lovelace\n')
  writeFileSync(join(cwd, 'people.csv'), 'Contact,Given,Family,Since\nbob@example.com,Bob,Bee,2025-01-02\n')
  const type = async (command: string) => {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME }
    return (await promisify(execFile)('sh', ['-c', command], { cwd, env })).stdout
  }
  const [dry, plain, mapped, ours, report, announced, ...others] = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(
    ([, block]) => block!.trim(),
  )
  assert.deepEqual(others, [], 'every command is typed here')
  assert.match(await type(dry!), /^1 would be added/)
  assert.match(await type(plain!), /^1 added/)
  assert.match(await type(mapped!), /^1 added/)
  assert.match(await type('npm run -s waitlist export'), /,Bob Bee,bob@example\.com,listed,2025-01-02T00:00:00\.000Z/)
  assert.match(await type(ours!), /^0 added, 2 on the list/)
  assert.match(await type(report!), /^0 added, 1 on the list/)
  assert.ok(existsSync(join(cwd, 'report.csv')))
  rmSync(path)
  assert.match(await type(announced!), /^1 added.*\nThe running service/)
})

test('the headings of the table are guessed', () => {
  const rows = [...text.matchAll(/^\| (email|name|time of the signup|source) \| (.*) \|$/gm)]
  assert.equal(rows.length, 4)
  const guess = (...heading: string[]) => {
    const columns = guessedColumns(heading)
    return 'unclear' in columns ? columns : Object.keys(columns)
  }
  const headings = (i: number) => rows[i]![2]!.split(', ')
  for (const email of headings(0)) assert.deepEqual(guess('Name', email), ['email', 'name'], email)
  for (const name of headings(1)[1]!.split(';')[0]!.split(', '))
    assert.deepEqual(guess('Email', name), ['email', 'name'])
  for (const time of headings(2)) assert.deepEqual(guess('Email', 'Name', time), ['email', 'name', 'createdAt'], time)
  for (const source of headings(3)) assert.deepEqual(guess('Email', 'Name', source), ['email', 'name', source])
})
