/**
 * Compares the digests that our images are pinned by with those of the registry: `node scripts/images.ts`, or with `--write`
 * to take over the registry's. Needs Docker with buildx. Ends with 1 where a digest differs or cannot be had.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const write = process.argv.includes('--write')

for (const path of ['Dockerfile', 'deploy/compose.instances.yaml']) {
  const text = readFileSync(path, 'utf8')
  let current = text
  for (const [, image = '', pinned = ''] of text.matchAll(/^(?:FROM| +image:) (\S+:\S+)@(sha256:\S+)/gm)) {
    const inspect = ['buildx', 'imagetools', 'inspect', image, '--format', '{{.Manifest.Digest}}']
    const { stdout, stderr, error } = spawnSync('docker', inspect, { encoding: 'utf8', timeout: 60_000 })
    const digest = stdout?.trim() ?? ''
    if (!/^sha256:[0-9a-f]{64}$/.test(digest)) {
      console.error(`${image}: no digest: ${stderr?.trim() || (error?.message ?? digest)}`)
      process.exitCode = 1
    } else if (digest === pinned) {
      console.log(`${image}: as pinned`)
    } else if (write) {
      console.log(`${image}: was ${pinned}, is now ${digest}`)
      current = current.replaceAll(pinned, digest)
    } else {
      console.error(`${image}: pinned ${pinned}, the registry has ${digest}`)
      process.exitCode = 1
    }
  }
  if (current !== text) writeFileSync(path, current)
}
