/** Where the waitlist reports what the operator should know. Never given an address, a name or a secret. */
export interface Log {
  info(details: object, message: string): void
  warn(details: object, message: string): void
  error(details: object, message: string): void
}

/** Only the operator can fix it. The message says what is wrong and what to do, so it is shown without a stack. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError'
  /** More about the message, a line each. */
  readonly details: readonly string[]

  constructor(message: string, details: readonly string[] = []) {
    super(message)
    this.details = details
  }
}
