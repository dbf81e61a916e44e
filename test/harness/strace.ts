import { spawnSync } from 'node:child_process'

/** Why system calls cannot be watched or made to fail on this machine. */
export function noStrace(): string | false {
  const { error, status, stderr } = spawnSync('strace', ['-f', '-e', 'trace=fsync', process.execPath, '-e', ''])
  if (error !== undefined) return 'strace is not installed'
  return status === 0 ? false : `strace is not permitted: ${stderr.toString().slice(0, 100)}`
}
