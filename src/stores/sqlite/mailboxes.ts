import type { DatabaseSync } from 'node:sqlite'
import type { Filled } from '../../waitlist/ports/upkeep.ts'
import { mailboxOf } from '../../waitlist/rules/mailbox.ts'

/** Returns the function that looks at the next contacts, inside an open transaction. */
export function fillingMailboxes(database: DatabaseSync): (after: number, most: number) => Filled {
  const page = database.prepare(
    'select number, email_key, mailbox from contact where number > ? order by number limit ?',
  )
  const fill = database.prepare('update contact set mailbox = ? where number = ?')
  return (after, most) => {
    const rows = page.all(after, most) as unknown as Row[]
    const wrong = rows.filter(row => row.mailbox !== mailboxOf(row.email_key))
    for (const { number, email_key } of wrong) fill.run(mailboxOf(email_key), number)
    return { filled: wrong.length, last: rows.length < most ? null : rows.at(-1)!.number }
  }
}

interface Row {
  readonly number: number
  readonly email_key: string
  readonly mailbox: string | null
}
