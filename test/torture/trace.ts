import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'

/**
 * What a process did to its files, said to its clients, and sent to others, in the order in which it had an effect: a write or an answer
 * when it began, a sync when it had ended. Positions count the lines of the trace.
 */
export type Call =
  | { readonly is: 'write'; readonly file: string; readonly at: number; readonly bytes: Buffer; readonly ended: number }
  | { readonly is: 'truncate'; readonly file: string; readonly size: number; readonly ended: number }
  /** Of a file, or of the names in a folder. What had ended when it began is on the disk. */
  | { readonly is: 'sync'; readonly file: string; readonly began: number }
  | { readonly is: 'create'; readonly file: string; readonly ended: number }
  | { readonly is: 'unlink'; readonly file: string; readonly ended: number }
  /** With the address that it is about, where the request had one. */
  | { readonly is: 'answer'; readonly status: number; readonly email: string | undefined }
  /** An attempt: a request of our own to this path, about this address. */
  | { readonly is: 'send'; readonly path: string; readonly email: string }

const WATCHED = 'openat,read,pwrite64,write,writev,ftruncate,fsync,fdatasync,unlink'

/** Microseconds that each sync takes longer, so that more happens during one. */
const DELAY = 3_000

/** Runs a program so that `readTrace` can read this file when it has ended. */
export const tracedTo = (file: string): readonly string[] => [
  ...['strace', '-D', '-f', '-qq', '-yy', '--seccomp-bpf', '-xx', '-s', '1000000', '-e', 'signal=none'],
  ...['-e', `trace=${WATCHED}`, '-e', `inject=fdatasync:delay_enter=${DELAY}`, '-o', file],
]

/** A call, whole or until another thread's came between, and how the latter ended: with `?` where its process was killed. */
const CALL = /^(\d+) +(\w+)\((.*?)(?:\)? += (-?\d+|\?)[^"]*| <unfinished \.\.\.>)$/
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>.*\) += (-?\d+|\?)/
const DESCRIPTOR = /^\d+<(.*?)>(?:, |$)/
const TEXT = /"((?:\\x[\da-f]{2})*)"/g

const emailIn = (text: string): string | undefined => /"email":"([^"]+)"/.exec(text)?.[1]?.toLowerCase()

const decoded = (hex: string): Buffer => Buffer.from(hex.replaceAll('\\x', ''), 'hex')

/** Calls that failed are left out, and files whose name does not begin with `files`. */
export async function readTrace(path: string, files: string): Promise<readonly Call[]> {
  const open = new Map<string, { readonly began: number; readonly name: string; readonly args: string }>()
  /** What came in on each connection since the last answer. */
  const asked = new Map<string, string>()
  /** What went out on each connection that began with a request, until the address was there. */
  const sending = new Map<string, { readonly began: number; readonly text: string }>()
  const found: { readonly position: number; readonly call: Call }[] = []
  let position = 0
  for await (const line of createInterface(createReadStream(path))) {
    position++
    const resumed = RESUMED.exec(line)
    if (resumed !== null) {
      const begun = open.get(resumed[1]!)
      if (begun !== undefined && begun.name === resumed[2])
        note(begun.name, begun.args, Number(resumed[3]), begun.began, position)
      open.delete(resumed[1]!)
      continue
    }
    const [, thread, name, args, result] = CALL.exec(line) ?? []
    if (thread === undefined) continue
    if (result === undefined) open.set(thread, { began: position, name: name!, args: args! })
    else note(name!, args!, Number(result), position, position)
  }
  // Taken as done: if it was not, the next process writes there again.
  for (const { began, name, args } of open.values()) note(name, args, Number.NaN, began, ++position)
  return found.sort((a, b) => a.position - b.position).map(({ call }) => call)

  function noteSending(target: string, more: string, began: number): void {
    const first = sending.get(target) ?? { began, text: '' }
    const text = first.text + more
    sending.set(target, { began: first.began, text })
    const email = emailIn(text)
    if (email === undefined) return
    sending.delete(target)
    found.push({ position: first.began, call: { is: 'send', path: text.split(' ')[1]!, email } })
  }

  function note(name: string, args: string, result: number, began: number, ended: number): void {
    if (result < 0) return
    const target = DESCRIPTOR.exec(args)?.[1] ?? ''
    const add = (call: Call, position = began) => void found.push({ position, call })
    if (target.startsWith('TCP')) {
      const text = [...args.matchAll(TEXT)].map(([, hex]) => decoded(hex!).toString('latin1')).join('')
      const before = asked.get(target) ?? ''
      if (name === 'read') return void asked.set(target, before + text)
      if (text.startsWith('POST ') || sending.has(target)) return noteSending(target, text, began)
      const status = /^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]
      // The rest of an answer whose beginning was noted.
      if (status === undefined) return
      asked.delete(target)
      return add({ is: 'answer', status: Number(status), email: emailIn(before) })
    }
    const named = name === 'openat' || name === 'unlink'
    const file = decoded(named ? (TEXT[Symbol.matchAll](args).next().value?.[1] ?? '') : target).toString()
    if (!file.startsWith(files)) return
    switch (name) {
      case 'pwrite64': {
        const at = Number(/(\d+)$/.exec(args)![1])
        const [[, hex] = []] = args.matchAll(TEXT)
        return add({ is: 'write', file, at, bytes: decoded(hex!).subarray(0, result || undefined), ended })
      }
      case 'ftruncate':
        return add({ is: 'truncate', file, size: Number(/(\d+)$/.exec(args)![1]), ended })
      case 'fsync':
      case 'fdatasync':
        return add({ is: 'sync', file, began }, ended)
      case 'openat':
        if (args.includes('O_CREAT')) add({ is: 'create', file, ended })
        return
      case 'unlink':
        return add({ is: 'unlink', file, ended })
    }
  }
}
