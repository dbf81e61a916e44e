/** What the pages of the links in mails say in English, by the keys that `MESSAGES_FILE` has for it. */
export const ofLinks = {
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

export type LinkKey = keyof typeof ofLinks
