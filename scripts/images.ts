/**
 * Holds what our files say of others' images against package.json and the registries: the release of Node.js, and the digests.
 * `node scripts/images.ts` names each difference, `--write` writes what it should be. Needs Docker with buildx. Ends with 1 where
 * something differs, or where an image is not to be had for each architecture.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

/** What the releases are for. */
const PLATFORMS = ['linux/amd64', 'linux/arm64']

interface Index {
  readonly digest: string
  readonly manifests?: readonly { readonly platform?: { readonly os: string; readonly architecture: string } }[]
}

const write = process.argv.includes('--write')
const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
  devDependencies: { readonly node: string }
}

/** The digest of an image of all architectures, or why there is none. */
function digestOf(image: string): { readonly digest: string } | { readonly why: string } {
  const inspect = ['buildx', 'imagetools', 'inspect', image, '--format', '{{json .Manifest}}']
  const { status, stdout, stderr, error } = spawnSync('docker', inspect, { encoding: 'utf8', timeout: 60_000 })
  if (error !== undefined || status !== 0) return { why: error?.message ?? stderr.trim() }
  const { digest, manifests = [] } = JSON.parse(stdout) as Index
  if (!/^sha256:[0-9a-f]{64}$/.test(digest)) return { why: `no digest: ${digest}` }
  const here = manifests.map(({ platform }) => `${platform?.os}/${platform?.architecture}`)
  const missing = PLATFORMS.filter(each => !here.includes(each))
  return missing.length > 0 ? { why: `none for ${missing.join(' and ')}` } : { digest }
}

for (const path of ['Dockerfile', 'deploy/compose.instances.yaml']) {
  const text = readFileSync(path, 'utf8')
  let current = text
  for (const [, pinned = ''] of text.matchAll(/^(?:FROM| +image:) (\S+:\S+@sha256:\S+)/gm)) {
    const image = pinned.replace(/@.*/, '').replace(/^node:[\d.]+/, `node:${devDependencies.node}`)
    const found = digestOf(image)
    const now = 'digest' in found ? `${image}@${found.digest}` : undefined
    if ('why' in found) {
      console.error(`${image}: ${found.why}`)
      process.exitCode = 1
    } else if (now === pinned) {
      console.log(`${image}: as pinned`)
    } else if (write) {
      console.log(`was ${pinned}, is now ${now}`)
      current = current.replaceAll(pinned, now!)
    } else {
      console.error(`pinned ${pinned}, the registry has ${now}`)
      process.exitCode = 1
    }
  }
  if (current !== text) writeFileSync(path, current)
}
