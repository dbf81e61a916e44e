/** Files with email domains. */
export interface DomainFiles {
  readonly blocked: string
  /** What is in it is accepted, whatever the other one says. Null: there are no exceptions. */
  readonly allowed: string | null
}
