import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'

/**
 * Why a database in this folder does not last, and what to do: it is in memory, or in the layer of a container. Null: it
 * lasts, or there is no way to tell, as there is only on Linux.
 */
export function whyEphemeral(path: string): string | null {
  // The settings themselves say so.
  if (path === ':memory:') return null
  try {
    const folder = existsSync(path) ? dirname(realpathSync(path)) : realpathSync(dirname(resolve(path)))
    return ephemeralIn(folder, readFileSync('/proc/self/mountinfo', 'utf8'))
  } catch {
    return null
  }
}

/** `mountinfo`: the mounts that a process sees (proc_pid_mountinfo(5)). */
export function ephemeralIn(folder: string, mountinfo: string): string | null {
  let mount = { point: '', type: '', options: '' }
  for (const line of mountinfo.split('\n')) {
    const [, escaped, type, options] = /^(?:\S+ ){4}(\S+) .*? - (\S+) \S+ (.*)$/.exec(line) ?? []
    if (escaped === undefined || type === undefined || options === undefined) continue
    const point = escaped.replaceAll(/\\(\d{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8)))
    const isAbove = point === '/' || folder === point || folder.startsWith(`${point}/`)
    // Of several on the same folder the last one is seen.
    if (isAbove && point.length >= mount.point.length) mount = { point, type, options }
  }
  if (mount.type === 'tmpfs' || mount.type === 'ramfs') return IN_MEMORY
  return isLayer(mount) ? IN_LAYER : null
}

const IN_MEMORY = 'the list is kept in memory, and gone when this machine or container stops: keep it on a disk'
const IN_LAYER = 'the list is kept inside this container, and gone when the container is replaced: keep it in a volume'

/**
 * The root of a container has what it writes in a folder of Docker, containerd (Kubernetes), Podman or CRI-O; rootless ones
 * may do it in a program of theirs. Other overlays last: those of routers, for example.
 */
const isLayer = ({ point, type, options }: { point: string; type: string; options: string }): boolean =>
  type === 'overlay'
    ? /(?:^|,)upperdir=[^,]*\/(?:overlay2?\/[^/,]+\/diff|snapshots\/\d+\/fs)(?:,|$)/.test(options)
    : type === 'fuse.fuse-overlayfs' && point === '/'
