#!/usr/bin/env node
// Where the image begins. Some hosts mount a volume that belongs to root, which only root can give away: so the
// image begins as root, gives the folder itself to user 1000, becomes that user for good, and then loads the program. What
// runs as another user from the start (`--user`, Kubernetes) stays that user.
import { chownSync, statSync } from 'node:fs'

const DATA = '/data'
const USER = 1000

if (process.getuid() === 0) {
  try {
    if (statSync(DATA).uid === 0) chownSync(DATA, USER, USER)
    process.setgroups([])
    process.setgid(USER)
    process.setuid(USER)
  } catch (error) {
    process.stderr.write(
      `waitlist: root may not give ${DATA} to user ${USER} and become that user (${error.message}): start the container as that user (--user ${USER}:${USER}), with a ${DATA} that belongs to it\n`,
    )
    process.exit(1)
  }
}
await import('../bin/waitlist.js')
