import { problems } from '../signup/parse.ts'

/**
 * What a visitor may read in the form about a signup, in English. The keys are those of `MESSAGES_FILE`, which has the form
 * and the pages in other languages; the API speaks English.
 */
export const results = {
  new: 'You are on the waitlist.',
  known: 'You are already on the waitlist.',
  recorded: 'Your signup is recorded.',
  unconfirmed: 'Please confirm the mail that we have sent you.',
  recordedOrAsked: 'Your signup is recorded. If you receive a mail from us, please confirm it.',
  ...problems,
  domainNotAccepted: 'this email domain is not accepted',
  challengeMissing: 'please solve the challenge',
  challengeFailed: 'the challenge was not solved, please try again',
  challengeExpired: 'the challenge has expired, please solve a new one',
  challengeSpent: 'the challenge was used for another signup, please solve a new one',
} as const

/** What the API says of a signup. In the place of the last ones, the form has sentences of its own. */
export const sentences = {
  ...results,
  addressNotAccepted: 'the email provider does not accept this address',
  tooManyAttempts: 'too many signup attempts, please try again in {wait}',
  unavailable: 'the waitlist service is temporarily unavailable, please try again',
  unavailableSaved: 'the waitlist service is temporarily unavailable; your signup is saved and will be completed',
  providerSaved: 'the email provider could not be reached; your signup is saved and will be completed',
} as const

export const pageSentences = {
  'confirm.ask': 'Confirm your email address',
  'confirm.askText': 'Press the button to join the waitlist.',
  'confirm.button': 'Confirm',
  'confirm.done': 'Your email address is confirmed',
  'confirm.doneBefore': 'Your email address is already confirmed',
  'confirm.doneText': 'Thank you. There is nothing else to do.',
  'confirm.expired': 'This link has expired',
  'confirm.deleted': 'This signup no longer exists',
  'confirm.expiredText': 'If you still want to join, please sign up again.',
  'unsubscribe.ask': 'Leave the waitlist?',
  'unsubscribe.askText': 'Your name and email address will be deleted from this list.',
  'unsubscribe.button': 'Leave the waitlist',
  'unsubscribe.done': 'You have left the waitlist',
  'unsubscribe.doneText': 'The name and email address of this signup are deleted.',
  'link.invalid': 'This link is not valid',
  'link.invalidText': 'Please open the link in the mail again. If that does not help, copy all of it.',
  'link.notFound': 'There is nothing at this address',
  'link.back': 'Back to the website',
  'link.failed': 'This does not work at the moment',
  'link.failedText': 'Please try again in a few minutes.',
} as const

export type PageKey = keyof typeof pageSentences

/** `{wait}` is a time, such as "30 seconds". */
export const formSentences = {
  'form.name': 'Name',
  'form.email': 'Email',
  'form.join': 'Join the waitlist',
  'form.didYouMean': 'Did you mean {email}?',
  'form.sending': 'One moment …',
  'form.thanks': 'Thank you, {name}.',
  'form.saved': 'Your signup is saved. You will be on the waitlist shortly.',
  'form.kept': 'Saved on this device.',
  'form.next': 'We will send it as soon as we can, or at your next visit.',
  'form.notKept': 'It could not be sent yet. Please keep this page open.',
  'form.tooMany': 'Too many attempts. We will try again in {wait}.',
  'form.change': 'Change the address',
  'form.later': 'Please try again later.',
  'form.reload': 'Please reload this page and try again.',
} as const

/** Every key of `MESSAGES_FILE`, with its sentence in English. */
export const translatable = { ...results, ...formSentences, ...pageSentences } as const
