/** What the other side says, for the log: one line of at most 200 characters, without addresses and without `secrets`. */
export function excerpt(said: string, secrets: readonly string[]): string {
  let line = said.replaceAll(/[\p{Cc}\s]+/gu, ' ').trim()
  for (const secret of secrets) line = line.replaceAll(secret, '…')
  return line.replaceAll(/[^\s"<>()[\],:;\\]+/g, word => (/@|%40/.test(word) ? '…' : word)).slice(0, 200)
}

/** What of the address of a webhook may be a secret. */
export const secretsIn = ({ pathname, searchParams }: URL): string[] =>
  [...pathname.split('/'), ...searchParams.values()].filter(part => part.length >= 8)
