/** Publishes the release with its files, all at once. If that was done before, nothing changes. */
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { ask, folder, run, version } from './release.ts'

const tag = `v${version}`
const files = globSync(join(folder, '{SHA256SUMS*,*.tgz,*.tar.gz,*.cdx.json}')).sort()
const state = ask(/release not found/i, 'gh', 'release', 'view', tag, '--json', 'isDraft', '--jq', '.isDraft')
if (state === 'false') console.log(`${tag} is published already.`)
else {
  if (state === undefined) {
    run(
      'gh',
      'release',
      'create',
      tag,
      '--draft',
      '--verify-tag',
      '--title',
      version,
      '--notes-file',
      join(folder, 'notes.md'),
    )
  }
  run('gh', 'release', 'upload', tag, '--clobber', ...files)
  run('gh', 'release', 'edit', tag, '--draft=false')
}
