import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ephemeralIn, whyEphemeral } from '../../src/stores/sqlite/ephemeral.ts'
import { temporaryFolder } from '../harness/folder.ts'
import { logOf, runProgram, spawnProgram } from '../harness/program.ts'

const id = 'a1b2c3d4'.repeat(8)
const lower = '/var/lib/docker/overlay2/l/ABC:/var/lib/docker/overlay2/l/DEF'
const layer = (upper: string, point = '/', lowerdir = lower) =>
  `612 484 0:57 / ${point} rw,relatime master:191 - overlay overlay rw,lowerdir=${lowerdir},upperdir=${upper},workdir=/w,xino=off`

/** The root of a container as its engines mount it. */
const roots = {
  Docker: layer(`/var/lib/docker/overlay2/${id}/diff`),
  'Docker with the store of containerd': layer(
    '/var/lib/docker/containerd/daemon/io.containerd.snapshotter.v1.overlayfs/snapshots/73/fs',
  ),
  Kubernetes: layer('/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs/snapshots/1543/fs'),
  'rootless Podman': layer(`/home/ada/.local/share/containers/storage/overlay/${id}/diff`),
  'rootless Podman of old kernels':
    '700 650 0:60 / / rw,nodev,noatime - fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0,group_id=0,default_permissions',
}

const others = [
  '613 612 0:60 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw',
  '614 612 0:61 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755',
  '620 612 254:1 /var/lib/docker/containers/x/hostname /etc/hostname rw,relatime - ext4 /dev/vda1 rw',
]
const mounts = (...lines: string[]) => [lines[0], ...others, ...lines.slice(1), ''].join('\n')
const on = (root: string, ...lines: string[]) => ephemeralIn('/data', mounts(root, ...lines))

describe('a data folder does not last', () => {
  for (const [engine, root] of Object.entries(roots)) {
    test(`in the layer of a container of ${engine}`, () => assert.match(on(root)!, /inside this container/))
  }

  for (const [what, mount] of [
    ['docker run --tmpfs /data', '630 612 0:70 / /data rw,nosuid,nodev,noexec,relatime - tmpfs tmpfs rw,size=8k'],
    ['an emptyDir in memory', '630 612 0:71 / /data rw,relatime - tmpfs tmpfs rw,size=16391580k,inode64'],
    ['ramfs', '630 612 0:72 / /data rw,relatime - ramfs ramfs rw'],
  ] as const) {
    test(`in memory: ${what}`, () => assert.match(on(roots.Docker, mount)!, /in memory/))
  }

  test('of several mounts, that of the nearest folder counts, and of those on one folder the last', () => {
    const tmpfs = (point: string) => `640 612 0:73 / ${point} rw - tmpfs tmpfs rw`
    const disk = (point: string) => `641 612 254:1 / ${point} rw shared:1 - ext4 /dev/vda1 rw`
    assert.equal(ephemeralIn('/data', mounts(disk('/'), tmpfs('/dat'))), null)
    assert.equal(ephemeralIn('/srv/list/data', mounts(tmpfs('/srv'), disk('/srv/list'))), null)
    assert.match(ephemeralIn('/srv/list/data', mounts(disk('/'), disk('/srv'), tmpfs('/srv/list')))!, /in memory/)
    assert.match(on(disk('/'), disk('/data'), tmpfs('/data'))!, /in memory/)
    assert.equal(on(disk('/'), tmpfs('/data'), disk('/data')), null)
    assert.match(ephemeralIn('/my data', mounts(disk('/'), tmpfs('/my\\040data')))!, /in memory/)
  })
})

describe('nothing is said of a data folder', () => {
  for (const [what, mount] of [
    [
      'a named volume',
      '630 612 254:1 /var/lib/docker/volumes/waitlist/_data /data rw,relatime master:1 - ext4 /dev/vda1 rw',
    ],
    ['a folder of the host', '630 612 0:44 /@home/ada/data /data rw - btrfs /dev/nvme0n1p3 rw,subvol=/@home/ada/data'],
    ['a disk of a cluster', '630 612 8:32 / /data rw,relatime - xfs /dev/sdc rw'],
    [
      'an emptyDir on the disk, which cannot be told from others',
      '630 612 8:1 /var/lib/kubelet/pods/x/volumes/kubernetes.io~empty-dir/d /data rw - ext4 /dev/sda1 rw',
    ],
    ['a folder that Docker Desktop shares', '630 612 0:51 / /data rw,relatime - fakeowner /run/host_mark/Users rw'],
  ] as const) {
    test(`in a container on ${what}`, () => assert.equal(on(roots.Docker, mount), null))
  }

  for (const [what, root] of [
    ['a plain disk', '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard'],
    ['a router, whose overlay is on flash', layer('/overlay/upper', '/', '/')],
    [
      'an image-based system',
      '25 1 0:22 / / ro,relatime - overlay composefs ro,lowerdir+=/run/ostree/.private/cfsroot-lower,datadir+=/sysroot/ostree/repo/objects,redirect_dir=on',
    ],
    ['a live system', layer('/cow/upper', '/', '/minimal.squashfs')],
    ['a container of LXC on ZFS', '401 299 0:61 / / rw,relatime shared:1 - zfs rpool/data/subvol-100-disk-0 rw,xattr'],
  ] as const) {
    test(`on ${what}`, () => assert.equal(on(root), null))
  }

  test('where nobody can look', t => {
    assert.equal(ephemeralIn('/data', ''), null)
    assert.equal(ephemeralIn('/data', 'nonsense\n - \n1 2 3'), null)
    assert.equal(whyEphemeral(join(temporaryFolder(t), 'missing', 'waitlist.db')), null)
    assert.equal(whyEphemeral(':memory:'), null)
  })
})

/** A mount of its own for a program, gone when it ends; and what it takes. */
const inMemory = (folder: string) => [
  ...['unshare', '--mount', 'sh', '-c'],
  ...['mount -t tmpfs -o size=96m none "$0" && exec "$@"', folder],
]
const canMount = spawnSync('unshare', ['--mount', 'true']).status === 0

test('one line of the log says so at the start, and check notes it', {
  skip: !canMount && 'only root can mount a folder in memory, and only on Linux',
}, async t => {
  const cwd = temporaryFolder(t)
  const memory = join(realpathSync(cwd), 'memory')
  mkdirSync(memory)
  symlinkSync(memory, join(cwd, 'data'))
  const through = inMemory(memory)
  const env = { HOST: '127.0.0.1', PORT: '0', SHUTDOWN_DELAY: '0', DATABASE_URL: 'sqlite:data/waitlist.db' }
  const program = await runProgram(t, env, { cwd, through })
  await program.end('SIGTERM')
  const told = logOf(program).filter(({ msg }) => String(msg).includes('kept in memory'))
  assert.deepEqual(
    told.map(({ level, folder }) => [level, folder]),
    [[40, memory]],
  )

  const check = spawnProgram(t, env, { cwd, through, args: ['check'] })
  assert.equal(await check.exited, 0)
  assert.match(check.stdout(), /^note {4}data folder: the list is kept in memory/m)
})
