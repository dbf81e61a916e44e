/** The result of trying one part of the configuration. */
export interface CheckResult {
  readonly what: string
  /** `note`: it works, and its owner should know. */
  readonly is: 'ok' | 'note' | 'wrong'
  readonly why: string
}
