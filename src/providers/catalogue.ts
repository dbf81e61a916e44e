import type { Rate } from '../outbound/pace.ts'
import {
  address,
  assignment,
  number,
  numbers,
  optional,
  required,
  type SettingsTable,
  type ValuesOf,
  withDefault,
  word,
  words,
  yesOrNo,
} from '../setting.ts'

/** What a vendor can promise. docs/providers.md says the same in words; a test compares the two. */
export interface Promises {
  /** Whether one of two simultaneous creations gets "existing"; if not, there is only a lookup before the creation. */
  readonly newness: 'atomic' | 'best effort'
  /** What "existing" means: in the whole account, or on the configured list. */
  readonly scope: 'account' | 'list'
  /** Whether a contact that we created can be told from one that was there before. */
  readonly recognisesOwn: boolean
  /** Milliseconds for which a repeated start of the automation is recognised and ignored. */
  readonly repeatable: number
}

export interface Vendor {
  readonly title: string
  readonly settings: SettingsTable
  readonly rate: Rate
  readonly promises: Promises
  /** What is wrong with settings that are each allowed. */
  readonly contradiction?: (values: Readonly<Record<string, unknown>>, eventName: string) => string | null
}

const SECOND = 1_000
const MINUTE = 60_000
const DAY = 86_400_000
const ALWAYS = Number.POSITIVE_INFINITY

/** The address of the API, which a region, a proxy or a test may change. */
const base = (url: string) =>
  withDefault(address, url, 'Address of the API.', 'Leave it, unless your account is told another one.')

/** Every vendor: its settings, its limits and its promises. Configuration, help and documentation read this table. */
export const vendors = {
  loops: {
    title: 'Loops',
    settings: {
      LOOPS_API_KEY: required(word, 'API key.', 'Loops: Settings, API, Generate key.'),
      LOOPS_MAILING_LISTS: optional(words, 'Ids of mailing lists to add the contact to.', 'Loops: Settings, Lists.'),
      LOOPS_BASE_URL: base('https://app.loops.so/api'),
    },
    rate: { calls: 10, per: SECOND, connections: 10 },
    // Loops does not document how long it keeps the key of an event.
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: DAY },
  },
  resend: {
    title: 'Resend',
    settings: {
      RESEND_API_KEY: required(word, 'API key with full access.', 'Resend: API Keys, Create API Key, Full access.'),
      RESEND_SEGMENT_ID: optional(word, 'Segment to add the contact to.', 'Resend: Audience, Segments.'),
      RESEND_BASE_URL: base('https://api.resend.com'),
    },
    rate: { calls: 5, per: SECOND, connections: 5 },
    promises: { newness: 'best effort', scope: 'account', recognisesOwn: true, repeatable: 0 },
  },
  kit: {
    title: 'Kit',
    settings: {
      KIT_API_KEY: required(word, 'API key (v4).', 'Kit: Settings, Developer, V4 keys.'),
      KIT_TAG_ID: optional(
        number,
        'Tag that is given to a new contact and starts the automation.',
        'Kit: Subscribers, Tags; the number in its address.',
      ),
      KIT_SEQUENCE_ID: optional(
        number,
        'Sequence that a new contact is added to.',
        'Kit: Send, Sequences; the number in its address.',
      ),
      KIT_BASE_URL: base('https://api.kit.com'),
    },
    rate: { calls: 120, per: MINUTE, connections: 5 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: ALWAYS },
  },
  brevo: {
    title: 'Brevo',
    settings: {
      BREVO_API_KEY: required(word, 'API key.', 'Brevo: Settings, SMTP & API, API keys.'),
      BREVO_LIST_IDS: optional(numbers, 'Lists to add the contact to.', 'Brevo: Contacts, Lists; the number after #.'),
      BREVO_FIRST_NAME_ATTRIBUTE: withDefault(
        word,
        'FIRSTNAME',
        'Attribute for the first name.',
        'Brevo: Contacts, Settings, Contact attributes.',
      ),
      BREVO_LAST_NAME_ATTRIBUTE: withDefault(
        word,
        'LASTNAME',
        'Attribute for the rest of the name.',
        'Brevo: Contacts, Settings, Contact attributes.',
      ),
      BREVO_BASE_URL: base('https://api.brevo.com'),
    },
    rate: { calls: 10, per: SECOND, connections: 10 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: 0 },
  },
  mailchimp: {
    title: 'Mailchimp',
    settings: {
      MAILCHIMP_API_KEY: required(
        word,
        'API key; the part after the dash names the data centre.',
        'Mailchimp: Account & billing, Extras, API keys.',
      ),
      MAILCHIMP_AUDIENCE_ID: required(
        word,
        'Audience that holds the list.',
        'Mailchimp: Audience, Settings, Audience ID.',
      ),
      MAILCHIMP_DOUBLE_OPT_IN: withDefault(
        yesOrNo,
        'false',
        'Whether Mailchimp asks the contact to confirm.',
        'Your choice.',
      ),
      MAILCHIMP_JOURNEY_ID: optional(
        number,
        'Journey to start, instead of an event; with MAILCHIMP_STEP_ID.',
        'Mailchimp: the API trigger of the flow shows both numbers.',
      ),
      MAILCHIMP_STEP_ID: optional(
        number,
        'Step of the journey with the API trigger.',
        'Mailchimp: the API trigger of the flow shows both numbers.',
      ),
      MAILCHIMP_BASE_URL: optional(address, 'Address of the API, instead of the one of the data centre.', 'Leave it.'),
    },
    rate: { calls: 100, per: SECOND, connections: 10 },
    promises: { newness: 'atomic', scope: 'list', recognisesOwn: true, repeatable: 0 },
    contradiction(
      { MAILCHIMP_API_KEY: key, MAILCHIMP_BASE_URL: url, MAILCHIMP_JOURNEY_ID: journey, MAILCHIMP_STEP_ID: step },
      eventName,
    ) {
      if ((journey === undefined) !== (step === undefined)) {
        return 'MAILCHIMP_JOURNEY_ID and MAILCHIMP_STEP_ID belong together: set both or none'
      }
      if (journey === undefined && (eventName.length < 2 || eventName.length > 30)) {
        return 'EVENT_NAME must have 2 to 30 characters'
      }
      const hasDataCentre = /-[a-z]{2,4}\d{1,3}$/.test(String(key))
      return hasDataCentre || url !== undefined
        ? null
        : 'MAILCHIMP_API_KEY must end with its data centre, such as -us21'
    },
  },
  plunk: {
    title: 'Plunk',
    settings: {
      PLUNK_SECRET_KEY: required(word, 'Secret key (sk_…), for contacts.', 'Plunk: Project settings, API keys.'),
      PLUNK_PUBLIC_KEY: required(word, 'Public key (pk_…), for events.', 'Plunk: Project settings, API keys.'),
      PLUNK_BASE_URL: base('https://next-api.useplunk.com'),
    },
    // 1,000 a minute, and 50 that change contacts a second: the slower one, evenly.
    rate: { calls: 16, per: SECOND, connections: 10 },
    promises: { newness: 'best effort', scope: 'account', recognisesOwn: true, repeatable: DAY },
    contradiction: (_, eventName) =>
      /^(?:email\.|contact\.(?:un)?subscribed$|segment\..*\.(?:entry|exit)$)/.test(eventName)
        ? 'EVENT_NAME must not be one of Plunk itself: email.…, contact.subscribed, contact.unsubscribed, segment.…'
        : null,
  },
  listmonk: {
    title: 'listmonk',
    settings: {
      LISTMONK_BASE_URL: required(address, 'Address of your listmonk, without /api.', 'The address of its admin page.'),
      LISTMONK_USER: required(
        word,
        'Name of the API user; it may get and manage subscribers and the lists, and send transactional mails.',
        'listmonk: Users, New, type API.',
      ),
      LISTMONK_TOKEN: required(word, 'Token of the API user.', 'listmonk: shown once when the API user is made.'),
      LISTMONK_LIST_IDS: required(
        numbers,
        'Lists to add the contact to.',
        'listmonk: Lists; the number beside the name.',
      ),
      LISTMONK_TEMPLATE_ID: optional(
        number,
        'Transactional template to send to a new contact.',
        'listmonk: Campaigns, Templates, type Transactional.',
      ),
    },
    rate: { calls: 100, per: SECOND, connections: 10 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: 0 },
  },
  klaviyo: {
    title: 'Klaviyo',
    settings: {
      KLAVIYO_API_KEY: required(
        word,
        'Private key with read and write access to profiles, and write access to events and lists.',
        'Klaviyo: Settings, API keys, Create private API key.',
      ),
      KLAVIYO_LIST_ID: optional(
        word,
        'List to add the contact to.',
        'Klaviyo: Audience, Lists & segments, Settings of the list.',
      ),
      KLAVIYO_BASE_URL: base('https://a.klaviyo.com'),
    },
    // 75 a second and 750 a minute: the slower one, evenly.
    rate: { calls: 12, per: SECOND, connections: 10 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: ALWAYS },
  },
  hubspot: {
    title: 'HubSpot',
    settings: {
      HUBSPOT_TOKEN: required(
        word,
        'Access token of a private app with read and write access to contacts.',
        'HubSpot: Settings, Integrations, Private Apps.',
      ),
      HUBSPOT_PROPERTY: optional(
        assignment,
        'Property to set on a new contact, as name=value; a workflow can enrol on it.',
        'HubSpot: Settings, Properties; use the internal name.',
      ),
      HUBSPOT_EVENT: optional(
        word,
        'Custom event to send (pe…_name); needs an Enterprise plan and the scope analytics.behavioral_events.send.',
        'HubSpot: Data Management, Custom events.',
      ),
      HUBSPOT_BASE_URL: base('https://api.hubapi.com'),
    },
    rate: { calls: 100, per: 10 * SECOND, connections: 10 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: 365 * DAY },
    contradiction({ HUBSPOT_PROPERTY: property }) {
      const name = (property as { name: string } | undefined)?.name ?? ''
      const isTaken = ['email', 'firstname', 'lastname'].includes(name)
      return isTaken ? `HUBSPOT_PROPERTY must be a property of your own: ${name} is what the visitor typed` : null
    },
  },
  buttondown: {
    title: 'Buttondown',
    settings: {
      BUTTONDOWN_API_KEY: required(word, 'API key with write access to subscribers.', 'Buttondown: Settings, API.'),
      BUTTONDOWN_TAGS: optional(
        words,
        'Tags to give to the contact; new ones are made.',
        'Buttondown: Tags; the name.',
      ),
      BUTTONDOWN_DOUBLE_OPT_IN: withDefault(
        yesOrNo,
        'true',
        'Whether Buttondown asks the contact to confirm.',
        'Your choice.',
      ),
      BUTTONDOWN_EMAIL_ID: optional(
        word,
        'Mail to send to a new contact.',
        'Buttondown: Emails; the id in its address.',
      ),
      BUTTONDOWN_BASE_URL: base('https://api.buttondown.com'),
    },
    rate: { calls: 10, per: SECOND, connections: 10 },
    // Not documented. The design that Buttondown refers to keeps an idempotency key for a day.
    promises: { newness: 'atomic', scope: 'list', recognisesOwn: true, repeatable: DAY },
  },
  customerio: {
    title: 'Customer.io',
    settings: {
      CUSTOMERIO_SITE_ID: required(
        word,
        'Site id of the Track API.',
        'Customer.io: Settings, API credentials, Track API keys.',
      ),
      CUSTOMERIO_API_KEY: required(
        word,
        'Key of the Track API.',
        'Customer.io: Settings, API credentials, Track API keys.',
      ),
      CUSTOMERIO_APP_KEY: optional(
        word,
        'Key of the App API, to look an address up first; without it every address is new there.',
        'Customer.io: Settings, API credentials, App API keys.',
      ),
      CUSTOMERIO_BASE_URL: withDefault(
        address,
        'https://track.customer.io',
        'Address of the Track API.',
        'https://track-eu.customer.io for an account in the EU.',
      ),
      CUSTOMERIO_APP_BASE_URL: {
        ...withDefault(
          address,
          'https://api.customer.io',
          'Address of the App API.',
          'https://api-eu.customer.io for an account in the EU.',
        ),
        needs: 'CUSTOMERIO_APP_KEY',
      },
    },
    // The rate of the Track API. The App API, which is called first, allows 10 calls a second.
    rate: { calls: 100, per: SECOND, connections: 10 },
    // With a key for the App API; without it every address is new.
    promises: { newness: 'best effort', scope: 'account', recognisesOwn: true, repeatable: ALWAYS },
  },
  mailerlite: {
    title: 'MailerLite',
    settings: {
      MAILERLITE_API_KEY: required(word, 'API token.', 'MailerLite: Integrations, API, Generate new token.'),
      MAILERLITE_GROUP_ID: optional(
        word,
        'Group that a new contact joins, which starts the automation.',
        'MailerLite: Subscribers, Groups; the number in its address.',
      ),
      MAILERLITE_BASE_URL: base('https://connect.mailerlite.com'),
    },
    rate: { calls: 120, per: MINUTE, connections: 5 },
    promises: { newness: 'best effort', scope: 'account', recognisesOwn: true, repeatable: ALWAYS },
  },
} as const satisfies Readonly<Record<string, Vendor>>

export type VendorName = keyof typeof vendors
export const vendorNames = Object.keys(vendors) as readonly VendorName[]

export type SettingsOf<Name extends VendorName> = ValuesOf<(typeof vendors)[Name]['settings']>
