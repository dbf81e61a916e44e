import { problems } from '../../signup/parse.ts'

/**
 * Every sentence that a person may be told about a signup, in English, by the key under which `MESSAGES_FILE` has it in other
 * languages. Those that only the author of a page meets, such as one about JSON, have no key and are English for everybody.
 *
 * `{wait}` is a time, such as "30 seconds".
 */
export const sentences = {
  new: 'You are on the waitlist.',
  known: 'You are already on the waitlist.',
  recorded: 'Your signup is recorded.',
  unconfirmed: 'Please confirm the mail that we have sent you.',
  recordedOrAsked: 'Your signup is recorded. If you receive a mail from us, please confirm it.',
  ...problems,
  domainNotAccepted: 'this email domain is not accepted',
  addressNotAccepted: 'the email provider does not accept this address',
  challengeMissing: 'please solve the challenge',
  challengeFailed: 'the challenge was not solved, please try again',
  challengeExpired: 'the challenge has expired, please solve a new one',
  challengeSpent: 'the challenge was used for another signup, please solve a new one',
  tooManyAttempts: 'too many signup attempts, please try again in {wait}',
  unavailable: 'the waitlist service is temporarily unavailable, please try again',
  unavailableSaved: 'the waitlist service is temporarily unavailable; your signup is saved and will be completed',
  providerSaved: 'the email provider could not be reached; your signup is saved and will be completed',
} as const

export type Key = keyof typeof sentences
