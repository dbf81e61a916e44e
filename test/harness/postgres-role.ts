/** A role with no other rights than the service needs once the tables are there. */
export const ROLE = 'waitlist_service'
export const PASSWORD = "p@ss:w/o?rd#%'&"

/** Another file may have made it on the same server. */
export const makeRole = `do $do$ begin create role ${ROLE} login password '${PASSWORD.replaceAll("'", "''")}';
  exception when duplicate_object or unique_violation then null; end $do$`

/** Identity columns need no right to their sequences. */
export const grants = (role: string): readonly string[] => [
  `grant usage on schema public to ${role}`,
  `grant select on waitlist_schema to ${role}`,
  `grant select, insert, update, delete on contact, delivery, channel, job_lock, erased, proof, secret, attempt to ${role}`,
]

/** The same database, as this role. */
export function roleUrl(url: string, password = PASSWORD): string {
  const as = new URL(url)
  as.username = ROLE
  as.password = encodeURIComponent(password)
  return as.href
}
