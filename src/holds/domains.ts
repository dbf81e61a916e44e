import { readFileSync } from 'node:fs'
import { domainToASCII } from 'node:url'
import { type Log, OperatorError } from '../config/operator.ts'

/** Email domains, each with its subdomains: true for one that is blocked, false for one that is excepted. */
type DomainList = ReadonlyMap<string, boolean>

const LABEL = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?'
const DOMAIN = new RegExp(`^(?=.{1,253}$)(?:${LABEL}\\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$`)

/**
 * Reads a list: a domain a line; `!` before it excepts it, and `#` begins a comment.
 *
 * @throws {OperatorError} when the file cannot be read, or has a line that is no domain.
 */
export function readDomains(path: string): DomainList {
  try {
    const list = new Map<string, boolean>()
    for (const [i, line] of readFileSync(path, 'utf8').split('\n').entries()) {
      const entry = line.split('#', 1)[0]!.trim()
      if (entry === '') continue
      const domain = domainToASCII(entry.replace(/^!/, '').replace(/\.$/, ''))
      if (!DOMAIN.test(domain))
        throw new Error(`${path}, line ${i + 1}: not a domain such as example.com or !example.com`)
      list.set(domain, !entry.startsWith('!') && list.get(domain) !== false)
    }
    return list
  } catch (error) {
    throw new OperatorError(`BLOCKED_DOMAINS_FILE cannot be used: ${(error as Error).message}`)
  }
}

/** Whether the domain of an address is blocked. The longest part of it that is in the list decides. */
export function isBlocked(email: string, list: DomainList): boolean {
  const labels = email.toLowerCase().split('@').at(-1)!.split('.')
  const domain = labels.map((_, i) => labels.slice(i).join('.')).find(part => list.has(part))
  return domain !== undefined && list.get(domain) === true
}

/** @throws {OperatorError} when the file cannot be used. */
export function openDomains(path: string, log: Log) {
  let list = readDomains(path)
  return {
    accepts: (email: string): boolean => !isBlocked(email, list),
    /** Reads the file again. One that cannot be used changes nothing. */
    reload(): void {
      try {
        list = readDomains(path)
        log.info({ domains: list.size }, 'the list of email domains was read again')
      } catch (error) {
        log.warn({ why: (error as Error).message }, 'the new list of email domains cannot be used; the old one stays')
      }
    },
  }
}
