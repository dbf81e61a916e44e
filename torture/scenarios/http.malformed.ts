import { contactsAt } from '../checker.ts'
import { answersIn, type Conversation, converse } from '../conversation.ts'
import { hiddenIn, type Malformed, malformed, TAKEN } from '../corpus/malformed.ts'
import { printable } from '../printable.ts'
import type { Scenario, Scene } from '../scenario.ts'
import { type Found, inTurn, listIn, underAttack, withTls } from '../under-attack.ts'

/** Connections at a time. */
const CLIENTS = 60

export const scenario: Scenario = {
  promise:
    'A malformed request is answered as RFC 9112 allows or its connection closes, and no request that hides in it is ever answered or stored.',
  weight: 4,
  run(scene) {
    const over = (env: Record<string, string>) => async () => {
      const program = await scene.service(env)
      return underAttack(scene, program, { memory: 100 }, () => sendAll(scene, program.baseUrl))
    }
    return inTurn(scene, { http: over({}), https: over(withTls) })
  },
}

/** Each whole, and in two pieces that are cut at random. */
async function sendAll(scene: Scene, baseUrl: string): Promise<Found> {
  const { ledger, random } = scene
  // It may be stored, and nobody counts how often.
  ledger.note(TAKEN, null)
  const broken: string[] = []
  let sent = 0
  const queue = malformed.flatMap(each => {
    const at = 1 + Math.floor(random() * (each.bytes.length - 1))
    return [[each.bytes], [each.bytes.subarray(0, at), each.bytes.subarray(at)]].map(pieces => ({ each, pieces }))
  })
  const client = async () => {
    for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
      const { each, pieces } = next
      const { isHalfClosed, answers } = each
      const mayWait = answers[0]!.some(status => status === 0 || status === 408)
      const halfClosed = isHalfClosed ? 'at once' : mayWait ? 'later' : undefined
      const saying = { pieces, from: '127.0.0.2', ...(halfClosed && ({ halfClosed } as const)) }
      const conversation = await converse(baseUrl, saying)
      sent++
      const wrong = whatIsWrong(each, conversation)
      if (wrong !== null)
        broken.push(`${each.what} (${pieces.map(({ length }) => length).join(' + ')} bytes): ${wrong}`)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  for (const { email } of await contactsAt(listIn(scene.folder))) {
    if (hiddenIn(email) === null) continue
    broken.push(`${malformed[hiddenIn(email)!]!.what}: the request that hides in it was stored`)
    // Said once is enough.
    ledger.note(email, null)
  }
  return { figures: [{ name: 'malformed requests', value: sent }], broken }
}

function whatIsWrong({ answers, isHead }: Malformed, { received, end }: Conversation): string | null {
  const read = answersIn(received, isHead)
  if (read === null) return `not whole answers of HTTP/1.1: ${printable(received.slice(0, 200))}`
  const statuses = read.map(({ status }) => status)
  const said = `answered ${statuses.join(', ')}`
  if (statuses.length > answers.length) return `${said}, which is one too many`
  if (statuses.some((status, i) => !answers[i]!.includes(status))) return said
  const odd = read.find(({ status, content }) => status >= 400 && !isHead && !/^{"error":"[^"]+"}$/.test(content))
  if (odd !== undefined) return `an error that is not of the one form: ${printable(odd.content.slice(0, 100))}`
  if (statuses.length === 0 && !answers[0]!.includes(0)) return `no answer; the connection was ${end}`
  // After an answer that says so, and without any, the connection must end (§9.6).
  const mustEnd = statuses.length === 0 || /^connection: close\r$/im.test(read.at(-1)!.head)
  return mustEnd && end === 'open' ? `${said || 'not answered'}, and the connection stays open` : null
}
