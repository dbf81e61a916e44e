import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { temporaryFolder } from '../harness/folder.ts'
import { execForm, type Instruction, ignoring, pairsIn, stagesOf } from './dockerfile.ts'

/** What a build ends with: the folder tree of the last stage, and how it is run. */
export interface Image {
  readonly tree: string
  readonly env: Readonly<Record<string, string>>
  readonly folder: string
  /** `uid:gid` */
  readonly user: string
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
  readonly health: readonly string[]
  readonly stopSignal: NodeJS.Signals
}

/** Why nothing can be built here; false: it can. */
export const noContainers = (): string | false =>
  spawnSync('unshare', ['--mount', '--net', 'sh', '-c', TRIAL]).status !== 0 &&
  'containers are made of namespaces and overlays, which need root on Linux, with util-linux and iproute2'

const TRIAL = `
ip link set lo up && setpriv --version >/dev/null || exit 1
folder=$(mktemp -d) && cd "$folder" && mkdir lower upper work merged
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged && umount merged
status=$?
cd / && rm -r "$folder"
exit $status`

/** What a base image has, taken from this machine: programs and libraries, read only. */
const LENT = ['usr/bin', 'usr/sbin', 'usr/lib', 'usr/lib64', 'usr/share', 'etc', 'dev', 'proc']

/** Gives a tree, `$1`, what it is lent: this machine's programs, this project's Node and this machine's npm. */
const lend = `
set -e
tree=$1 node=$2 npm=$3; shift 3
for each in ${LENT.join(' ')}; do
  [ -d /$each ] || continue
  mount --rbind /$each "$tree/$each"
  mount -o remount,bind,ro "$tree/$each"
done
mount --bind "$node" "$tree/usr/local/bin/node"
mount --bind "$npm" "$tree/usr/local/lib/node_modules/npm"
mount -t tmpfs -o mode=1777 tmpfs "$tree/tmp"
`
const npm = () => realpathSync(join(execFileSync('npm', ['root', '--global'], { encoding: 'utf8' }).trim(), 'npm'))
const lent = () => [process.execPath, npm()]

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/** A tree as `FROM node` leaves it, without what it is lent. */
function baseTree(tree: string): void {
  for (const each of [...LENT, 'tmp', 'usr/local/bin', 'usr/local/lib/node_modules/npm']) {
    mkdirSync(join(tree, each), { recursive: true })
  }
  for (const each of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${each}`, join(tree, each))
  writeFileSync(join(tree, 'usr/local/bin/node'), '', { mode: 0o755 })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(tree, 'usr/local/bin/npm'))
}

/** What a build machine tells npm about its registry, as a `docker build` would with secrets and build arguments. */
const ofBuildMachine = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /^npm_config_|_proxy$|^NODE_EXTRA_CA_CERTS$|^SSL_CERT/i.test(name)),
)

/**
 * Carries out a Dockerfile, one instruction after the other, in trees that hold nothing else: `COPY` takes what
 * `.dockerignore` leaves of the checkout, and `RUN` runs in the tree as its root.
 */
export function build(t: Pick<TestContext, 'after'>, checkout: string): Image {
  const text = (name: string) => readFileSync(join(checkout, name), 'utf8')
  const isIgnored = ignoring(text('.dockerignore'))
  const workshop = temporaryFolder(t)
  const trees: Record<string, string> = {}
  let image: Image | undefined
  for (const { name, base, instructions } of stagesOf(text('Dockerfile'))) {
    if (!/^node\b/.test(base)) throw new Error(`only an image of Node is known, not ${base}`)
    const tree = join(workshop, name)
    trees[name] = tree
    baseTree(tree)
    const made = {
      env: { PATH } as Record<string, string>,
      folder: '/',
      user: '0:0',
      stopSignal: 'SIGTERM',
      entrypoint: [] as readonly string[],
      command: [] as readonly string[],
      health: [] as readonly string[],
    }
    const carryOut: Record<string, (instruction: Instruction) => void> = {
      ENV: ({ rest }) => Object.assign(made.env, pairsIn(rest)),
      USER: ({ rest: user }) => Object.assign(made, { user }),
      STOPSIGNAL: ({ rest: stopSignal }) => Object.assign(made, { stopSignal }),
      ENTRYPOINT: ({ rest }) => Object.assign(made, { entrypoint: execForm(rest) }),
      CMD: ({ rest }) => Object.assign(made, { command: execForm(rest) }),
      HEALTHCHECK: ({ rest }) => Object.assign(made, { health: execForm(rest.replace(/^CMD\s+/, '')) }),
      LABEL: () => {},
      EXPOSE: () => {},
      WORKDIR({ rest }) {
        made.folder = resolve(made.folder, rest)
        mkdirSync(join(tree, made.folder), { recursive: true })
      },
      RUN({ rest }) {
        const script = `${lend} cp ~/.npmrc "$tree/tmp/npmrc" 2>/dev/null || true; exec chroot "$tree" "$@"`
        const [uid, gid] = made.user.split(':')
        const inside = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', 'env', '-C', made.folder]
        const args = ['--mount', 'sh', '-c', script, 'sh', tree, ...lent(), ...inside, 'sh', '-c', rest]
        const env = { HOME: homedir(), ...ofBuildMachine, npm_config_userconfig: '/tmp/npmrc', ...made.env }
        execFileSync('unshare', args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
      },
      COPY({ flags, rest }) {
        const names = rest.split(/\s+/)
        const to = names.pop()!
        const source = flags.from === undefined ? checkout : trees[flags.from]
        if (source === undefined) throw new Error(`there is no stage ${flags.from}`)
        const target = join(tree, resolve(made.folder, to))
        for (const each of names) {
          const from = join(source, each)
          const isKept = (path: string) => flags.from !== undefined || !isIgnored(relative(checkout, path))
          if (!existsSync(from) || !isKept(from)) throw new Error(`COPY finds no ${each}`)
          const place = statSync(from).isDirectory() || !to.endsWith('/') ? target : join(target, basename(each))
          mkdirSync(dirname(place), { recursive: true })
          cpSync(from, place, { recursive: true, verbatimSymlinks: true, filter: isKept })
          if (statSync(from).isDirectory()) chmodSync(place, statSync(from).mode)
          const [uid, gid] = (flags.chown ?? '0:0').split(':').map(Number)
          execFileSync('chown', ['--recursive', '--no-dereference', `${uid}:${gid}`, place])
        }
      },
    }
    for (const instruction of instructions) {
      const how = carryOut[instruction.word]
      if (how === undefined) throw new Error(`${instruction.word} is not known here`)
      how(instruction)
    }
    image = { ...made, tree, stopSignal: made.stopSignal as NodeJS.Signals }
  }
  return image!
}

/** A folder that keeps what a container writes. A new one takes over the owner and the mode of what it covers. */
export function volume(t: Pick<TestContext, 'after'>, { tree }: Image, at: string): string {
  const folder = temporaryFolder(t)
  const { uid, gid, mode } = statSync(join(tree, at))
  chownSync(folder, uid, gid)
  chmodSync(folder, mode)
  return folder
}

export interface Container {
  readonly process: ChildProcess
  readonly output: () => string
  readonly exited: Promise<number | null>
  /** What stands before a command that runs inside, as the same user. */
  readonly into: readonly string[]
  /** Resolves with the exit code of such a command, and what it wrote to standard output. */
  exec(...command: string[]): Promise<{ code: number; stdout: string }>
}

/** What root may do in a container unless it is told otherwise, as far as it matters here (capabilities(7)). */
const ROOT = ['--groups=0', '--bounding-set=-all,+chown,+dac_override,+fowner,+setuid,+setgid']

/** As with `cap_drop: ALL` and `no-new-privileges`. */
const NOBODY = ['--clear-groups', '--no-new-privs', '--bounding-set=-all']

/**
 * Runs an image with a network of its own and no right beyond its user's, or those of a container's root. With a volume the
 * rest of the tree is read only; without one, what is written goes into a layer, as Docker has it.
 */
export function run(
  t: Pick<TestContext, 'after'>,
  image: Image,
  data?: { readonly at: string; readonly volume: string },
  { dropped = true } = {},
): Container {
  const layer = join(temporaryFolder(t), 'overlay2', 'a1b2c3')
  const [upper, work, root] = [join(layer, 'diff'), join(layer, 'work'), join(layer, 'merged')]
  for (const each of [upper, work, root]) mkdirSync(each, { recursive: true })
  const script = `
set -e
ip link set lo up
mount -t overlay overlay -o "lowerdir=$1,upperdir=${upper},workdir=${work}" ${root}
shift
set -- ${root} "$@"
${lend}
${data === undefined ? '' : `mount --bind ${data.volume} "$tree${data.at}"; mount -o remount,bind,ro "$tree"`}
exec chroot "$tree" "$@"`
  const [uid, gid] = image.user.split(':')
  const user = [`--reuid=${uid}`, `--regid=${gid}`, ...(dropped ? NOBODY : ROOT)]
  const { entrypoint, command } = image
  const inside = ['setpriv', ...user, '--inh-caps=-all', 'env', '-C', image.folder, ...entrypoint, ...command]
  const args = ['--mount', '--net', 'sh', '-c', script, 'sh', image.tree, ...lent(), ...inside]
  const child = spawn('unshare', args, { env: image.env })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', chunk => {
      output += chunk
    })
  }
  const exited = once(child, 'close').then(([code]) => code as number | null)
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
  const target = ['--target', `${child.pid}`, '--mount', '--net', '--root', '--setuid', uid!, '--setgid', gid!]
  const into = ['nsenter', ...target, 'env', '-C', image.folder]
  return {
    process: child,
    output: () => output,
    exited,
    into,
    exec: (...command) =>
      promisify(execFile)(into[0]!, [...into.slice(1), ...command], { env: image.env }).then(
        ({ stdout }) => ({ code: 0, stdout }),
        ({ code, stdout }) => ({ code, stdout }),
      ),
  }
}
