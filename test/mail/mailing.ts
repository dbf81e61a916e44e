import type { TestContext } from 'node:test'
import PostalMime from 'postal-mime'
import { linksOf } from '../../src/confirm/token.ts'
import { mailDestination } from '../../src/mail/destination.ts'
import { mailServer } from '../../src/mail/send.ts'
import type { MailSettings } from '../../src/mail/settings.ts'
import type { MailServer, ReceivedMail } from '../harness/mail-server.ts'

export const login = { user: 'postmaster', password: 'correct horse' }
export const links = linksOf('https://waitlist.acme.example', 'ab'.repeat(32), () => Date.UTC(2026, 10, 1))

export type Changes = Omit<Partial<MailSettings>, 'server'> & { readonly server?: Partial<MailSettings['server']> }

/** The mails of Acme, through this server. */
export function mailing(
  t: Pick<TestContext, 'after'>,
  { host, port }: Pick<MailServer, 'host' | 'port'>,
  { server, ...changes }: Changes = {},
) {
  const settings: MailSettings = {
    from: { name: 'Acme', address: 'hello@acme.example' },
    letters: ['confirmation', 'joined', 'invited'],
    templates: null,
    inviteLink: null,
    rate: 6_000,
    service: 'Acme',
    heloName: 'waitlist.acme.example',
    ...changes,
    server: { host, port, secure: false, login: null, ...server },
  }
  const pool = mailServer(settings)
  t.after(pool.close)
  return { ...mailDestination(settings, () => links, pool), close: pool.close }
}

export const parsed = ({ source }: Pick<ReceivedMail, 'source'>) => PostalMime.parse(source)

/** Without what keeps a name from being a link. */
export const visible = (text: string | undefined) => text?.replaceAll('\u2060', '')
