import {
  address,
  assignment,
  assignments,
  type Kind,
  language,
  line,
  names,
  number,
  numbers,
  oneOf,
  optional,
  page,
  required,
  type SettingsTable,
  shaped,
  type ValuesOf,
  withDefault,
  word,
  words,
  yesOrNo,
} from '../config/kinds.ts'
import type { Rate } from '../outbound/pace.ts'

/** What a vendor can promise. docs/providers.md says the same in words; a test compares the two. */
export interface Promises {
  /** Whether one of two simultaneous creations gets "existing"; if not, there is only a lookup before the creation. */
  readonly newness: 'atomic' | 'best effort'
  /** What "existing" means: in the whole account, or on the configured list. */
  readonly scope: 'account' | 'list'
  /** Whether a contact that we created can be told from one that was there before. */
  readonly recognisesOwn: boolean
  /** Milliseconds for which a repeated start of the automation is recognised and ignored; null: there is none to start. */
  readonly repeatable: number | null
  /** Whether its API erases one person: at once, or some time after it has accepted that. */
  readonly removal: 'at once' | 'later' | 'by hand'
}

export interface Vendor {
  readonly title: string
  readonly settings: SettingsTable
  readonly rate: Rate
  readonly promises: Promises
  /** The settings that name what contacts are added to, which those that the vendor knew before may join too. */
  readonly joins: readonly string[]
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

/** The address of a server of the operator's own, to which we add the rest of the path. */
const site = (ending: string): Kind<string> => ({
  allowed: `${address.allowed}, and without ${ending} at its end`,
  read(text) {
    const url = address.read(text)
    return url?.endsWith(ending) ? undefined : url
  },
})

/** Every vendor: its settings, its limits and its promises. Configuration, help and documentation read this table. */
export const vendors = {
  loops: {
    title: 'Loops',
    settings: {
      LOOPS_API_KEY: required(word, 'API key.', 'Loops: Settings, API, Generate key.'),
      LOOPS_MAILING_LISTS: optional(words, 'Ids of mailing lists to add the contact to.', 'Loops: Settings, Lists.'),
      LOOPS_USER_GROUP: optional(line(500), 'User group of a new contact.', 'Your choice.'),
      LOOPS_CONTACT_PROPERTIES: optional(
        assignments,
        'Custom properties of type string to set on a new contact: name=value, separated by commas.',
        'Loops: Settings, API, the API name; make them there first.',
      ),
      LOOPS_EVENT_PROPERTIES: optional(
        assignments,
        'Properties of type string to send with the event: name=value, separated by commas.',
        'Loops: Events; use the same names in your workflow.',
      ),
      LOOPS_BASE_URL: base('https://app.loops.so/api'),
    },
    rate: { calls: 10, per: SECOND, connections: 10 },
    // Loops does not document how long it keeps the key of an event.
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: DAY, removal: 'at once' },
    joins: ['LOOPS_MAILING_LISTS'],
    contradiction({ LOOPS_CONTACT_PROPERTIES: properties }) {
      const own = ['email', 'firstName', 'lastName', 'mailingLists', 'source', 'subscribed', 'userGroup', 'userId']
      const taken = own.find(name => Object.hasOwn(properties ?? {}, name))
      return taken === undefined ? null : `LOOPS_CONTACT_PROPERTIES must be properties of your own: ${taken} is Loops'`
    },
  },
  resend: {
    title: 'Resend',
    settings: {
      RESEND_API_KEY: required(word, 'API key with full access.', 'Resend: API Keys, Create API Key, Full access.'),
      RESEND_SEGMENT_IDS: optional(words, 'Segments to add the contact to.', 'Resend: Audience, Segments.'),
      RESEND_TOPIC_IDS: optional(words, 'Topics that the contact opts in to.', 'Resend: Audience, Topics.'),
      RESEND_PROPERTIES: optional(
        assignments,
        'Properties of type string to set on a new contact: name=value, separated by commas.',
        'Resend: Audience, Properties; make them there first.',
      ),
      RESEND_BASE_URL: base('https://api.resend.com'),
    },
    rate: { calls: 5, per: SECOND, connections: 5 },
    promises: { newness: 'best effort', scope: 'account', recognisesOwn: true, repeatable: 0, removal: 'at once' },
    joins: ['RESEND_SEGMENT_IDS'],
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
      KIT_TAG_IDS: optional(
        numbers,
        'More tags to give to the contact.',
        'Kit: Subscribers, Tags; the number in the address of each.',
      ),
      KIT_FORM_ID: optional(
        number,
        'Form to add the contact to, which may ask it to confirm.',
        'Kit: Grow, Landing pages & forms; the number in its address.',
      ),
      KIT_REFERRER_URL: {
        ...optional(page, 'Page that a new contact comes from, for the form.', 'The address of your page.'),
        needs: 'KIT_FORM_ID',
      },
      KIT_LAST_NAME_FIELD: optional(
        word,
        'Custom field for the rest of the name.',
        'Kit: Subscribers, a subscriber, Custom fields; the key, such as last_name.',
      ),
      KIT_FIELDS: optional(
        assignments,
        'Custom fields of a new contact, as name=value.',
        'Kit: Subscribers, a subscriber, Custom fields; the key of each.',
      ),
      KIT_BASE_URL: base('https://api.kit.com'),
    },
    rate: { calls: 120, per: MINUTE, connections: 5 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: ALWAYS, removal: 'by hand' },
    joins: ['KIT_TAG_IDS', 'KIT_FORM_ID'],
    contradiction({ KIT_TAG_ID: tag, KIT_TAG_IDS: tags, KIT_LAST_NAME_FIELD: lastName, KIT_FIELDS: fields }) {
      if ((tags as readonly unknown[] | undefined)?.includes(tag)) {
        return 'KIT_TAG_IDS must not have the tag of KIT_TAG_ID: it would start the automation too early'
      }
      const isTwice = typeof lastName === 'string' && Object.hasOwn((fields as object | undefined) ?? {}, lastName)
      return isTwice ? 'KIT_FIELDS must not have the field of KIT_LAST_NAME_FIELD' : null
    },
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
      BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: optional(
        number,
        'Template of the mail that asks the contact to confirm, before it is created.',
        'Brevo: Templates; the number after # of a double opt-in template.',
      ),
      BREVO_DOUBLE_OPT_IN_REDIRECT_URL: optional(
        page,
        'Page that the contact sees after confirming; with BREVO_DOUBLE_OPT_IN_TEMPLATE_ID.',
        'A page of yours that anybody can open.',
      ),
      BREVO_BASE_URL: base('https://api.brevo.com'),
    },
    rate: { calls: 10, per: SECOND, connections: 10 },
    // With double opt-in there is only a lookup before.
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: 0, removal: 'at once' },
    joins: ['BREVO_LIST_IDS'],
    contradiction({
      BREVO_DOUBLE_OPT_IN_TEMPLATE_ID: template,
      BREVO_DOUBLE_OPT_IN_REDIRECT_URL: redirect,
      BREVO_LIST_IDS: lists,
    }) {
      if ((template === undefined) !== (redirect === undefined)) {
        return 'BREVO_DOUBLE_OPT_IN_TEMPLATE_ID and BREVO_DOUBLE_OPT_IN_REDIRECT_URL belong together: set both or none'
      }
      return template !== undefined && lists === undefined
        ? 'BREVO_DOUBLE_OPT_IN_TEMPLATE_ID needs BREVO_LIST_IDS: those who confirm are added to them'
        : null
    },
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
      MAILCHIMP_TAGS: optional(
        names,
        'Tags to give to the contact; new ones are made.',
        'Mailchimp: Audience, Tags; the name.',
      ),
      MAILCHIMP_INTEREST_IDS: optional(
        words,
        'Interests (group names) to give to the contact.',
        'Mailchimp: its API lists them, under interest-categories of the audience.',
      ),
      MAILCHIMP_LANGUAGE: optional(
        language,
        'Language of the contact.',
        'Mailchimp: the code of a contact language, such as de or pt_PT.',
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
    promises: { newness: 'atomic', scope: 'list', recognisesOwn: true, repeatable: 0, removal: 'at once' },
    joins: ['MAILCHIMP_TAGS', 'MAILCHIMP_INTEREST_IDS'],
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
      PLUNK_SUBSCRIBED: optional(
        yesOrNo,
        'Whether a new contact is subscribed to marketing mails; Plunk subscribes it unless this is false.',
        'Your choice.',
      ),
      PLUNK_BASE_URL: base('https://next-api.useplunk.com'),
    },
    // 1,000 a minute, and 50 that change contacts a second: the slower one, evenly.
    rate: { calls: 16, per: SECOND, connections: 10 },
    promises: { newness: 'best effort', scope: 'account', recognisesOwn: true, repeatable: DAY, removal: 'at once' },
    joins: [],
    contradiction: (_, eventName) =>
      /^(?:email\.|contact\.(?:un)?subscribed$|segment\..*\.(?:entry|exit)$)/.test(eventName)
        ? 'EVENT_NAME must not be one of Plunk itself: email.…, contact.subscribed, contact.unsubscribed, segment.…'
        : null,
  },
  listmonk: {
    title: 'listmonk',
    settings: {
      LISTMONK_BASE_URL: required(
        site('/api'),
        'Address of your listmonk, without /api.',
        'The address of its admin page.',
      ),
      LISTMONK_USER: required(
        word,
        'Name of an API user that may get and manage subscribers and the lists, and send transactional mails.',
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
      LISTMONK_PRECONFIRM: withDefault(
        yesOrNo,
        'false',
        'Whether subscriptions count as confirmed, so that lists with double opt-in ask nobody.',
        'Your choice; with true you vouch for the consent.',
      ),
      LISTMONK_ATTRIBUTES: optional(
        assignments,
        'Attributes of a new subscriber, as name=value, separated by commas.',
        'Your choice; templates and queries may use them.',
      ),
    },
    rate: { calls: 100, per: SECOND, connections: 10 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: 0, removal: 'at once' },
    joins: ['LISTMONK_LIST_IDS'],
    contradiction: ({ LISTMONK_ATTRIBUTES: attributes = {} }) =>
      Object.hasOwn(attributes as object, 'waitlist')
        ? 'LISTMONK_ATTRIBUTES must not set waitlist: by this attribute Waitlist knows its own subscribers'
        : null,
  },
  klaviyo: {
    title: 'Klaviyo',
    settings: {
      KLAVIYO_API_KEY: required(
        word,
        'Private key with read and write access to profiles and lists, and write access to events and subscriptions.',
        'Klaviyo: Settings, API keys, Create private API key.',
      ),
      KLAVIYO_LIST_ID: optional(
        word,
        'List to add the contact to.',
        'Klaviyo: Audience, Lists & segments, Settings of the list.',
      ),
      KLAVIYO_CONSENT: withDefault(
        yesOrNo,
        'false',
        'Whether a new contact is subscribed to email marketing, so that you may mail it.',
        'Your choice: your form must say so.',
      ),
      KLAVIYO_BASE_URL: base('https://a.klaviyo.com'),
    },
    // 75 a second and 750 a minute: the slower one, evenly.
    rate: { calls: 12, per: SECOND, connections: 10 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: ALWAYS, removal: 'later' },
    joins: ['KLAVIYO_LIST_ID'],
  },
  hubspot: {
    title: 'HubSpot',
    settings: {
      HUBSPOT_TOKEN: required(
        word,
        'Service key with the scopes crm.objects.contacts.read and .write; for lists crm.lists.read and .write, too.',
        'HubSpot: Development, Keys, Service keys, Create service key.',
      ),
      HUBSPOT_LIST_IDS: optional(
        numbers,
        'Static lists (segments) to add the contact to.',
        'HubSpot: CRM, Segments, Details of the segment; the ILS id.',
      ),
      HUBSPOT_PROPERTY: optional(
        assignment,
        'Property to set on a new contact, as name=value; a workflow can enrol on it.',
        'HubSpot: Settings, Properties; use the internal name.',
      ),
      HUBSPOT_LIFECYCLE_STAGE: optional(
        word,
        'Lifecycle stage of a new contact, such as subscriber or lead.',
        'HubSpot: Settings, Objects, Contacts, Lifecycle stage; the internal id.',
      ),
      HUBSPOT_LEGAL_BASIS: optional(
        line(200),
        "Legal basis for processing a new contact's data, such as Freely given consent from contact.",
        "HubSpot: Settings, Properties, Legal basis for processing contact's data; the internal name of the option.",
      ),
      HUBSPOT_EVENT: optional(
        word,
        'Custom event to send (pe…_name); needs an Enterprise plan and the scope analytics.behavioral_events.send.',
        'HubSpot: Data Management, Custom events.',
      ),
      HUBSPOT_BASE_URL: base('https://api.hubapi.com'),
    },
    rate: { calls: 100, per: 10 * SECOND, connections: 10 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: 365 * DAY, removal: 'later' },
    joins: ['HUBSPOT_LIST_IDS'],
    contradiction({ HUBSPOT_PROPERTY: property, HUBSPOT_LIFECYCLE_STAGE: stage, HUBSPOT_LEGAL_BASIS: basis }) {
      const name = (property as { name: string } | undefined)?.name ?? ''
      if (['email', 'firstname', 'lastname'].includes(name)) {
        return `HUBSPOT_PROPERTY must be a property of your own: ${name} is what the visitor typed`
      }
      const isTwice = (name === 'lifecyclestage' && stage) || (name === 'hs_legal_basis' && basis)
      return isTwice ? `HUBSPOT_PROPERTY must not be ${name}, which has a setting of its own` : null
    },
  },
  buttondown: {
    title: 'Buttondown',
    settings: {
      BUTTONDOWN_API_KEY: required(
        word,
        'API key with write access to subscribers; for a mail also with read access to emails.',
        'Buttondown: Settings, API.',
      ),
      BUTTONDOWN_TAGS: optional(
        names,
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
      BUTTONDOWN_REFERRER_URL: optional(page, 'Page that a new contact comes from.', 'The address of your page.'),
      BUTTONDOWN_BASE_URL: base('https://api.buttondown.com'),
    },
    rate: { calls: 10, per: SECOND, connections: 10 },
    // Not documented. The design that Buttondown refers to keeps an idempotency key for a day.
    promises: { newness: 'atomic', scope: 'list', recognisesOwn: true, repeatable: DAY, removal: 'at once' },
    joins: ['BUTTONDOWN_TAGS'],
  },
  customerio: {
    title: 'Customer.io',
    settings: {
      CUSTOMERIO_API: withDefault(
        oneOf('track', 'pipelines'),
        'track',
        'API that people and events are sent to.',
        'Your choice; Customer.io recommends pipelines for what is new.',
      ),
      CUSTOMERIO_SITE_ID: optional(
        word,
        'Site id; the Track API needs it.',
        'Customer.io: Settings, API credentials, Track API keys.',
      ),
      CUSTOMERIO_API_KEY: required(
        word,
        'Key of the Track API, or of the source that the Pipelines API writes to.',
        'Customer.io: Settings, API credentials, Track API keys; or Integrations, Customer.io API or HTTP, Settings.',
      ),
      CUSTOMERIO_APP_KEY: optional(
        word,
        'Key of the App API, to look an address up first; without it every address is new there.',
        'Customer.io: Settings, API credentials, App API keys.',
      ),
      CUSTOMERIO_ATTRIBUTES: {
        ...optional(assignments, 'Attributes of a new person, as name=value.', 'Your choice.'),
        needs: 'CUSTOMERIO_APP_KEY',
      },
      CUSTOMERIO_SEGMENT_ID: {
        ...optional(
          number,
          'Manual segment to add the person to, by the Track API.',
          'Customer.io: Segments, the segment, Usage.',
        ),
        needs: 'CUSTOMERIO_APP_KEY',
      },
      CUSTOMERIO_BASE_URL: optional(
        address,
        'Address of the API, instead of https://track.customer.io or https://cdp.customer.io.',
        'https://track-eu.customer.io or https://cdp-eu.customer.io for an account in the EU.',
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
    // The App API, which is called first, allows 10 calls a second.
    rate: { calls: 100, per: SECOND, connections: 10 },
    // With a key for the App API; without it every address is new. The Pipelines API recognises a repetition for a day.
    promises: { newness: 'best effort', scope: 'account', recognisesOwn: true, repeatable: ALWAYS, removal: 'later' },
    joins: ['CUSTOMERIO_SEGMENT_ID'],
    contradiction({
      CUSTOMERIO_API: api,
      CUSTOMERIO_SITE_ID: site,
      CUSTOMERIO_SEGMENT_ID: segment,
      CUSTOMERIO_ATTRIBUTES: attributes,
    }) {
      if (api === 'track' && site === undefined) {
        return 'CUSTOMERIO_SITE_ID is missing: the Track API needs it; the Pipelines API (CUSTOMERIO_API=pipelines) does not'
      }
      if (api === 'pipelines' && site !== undefined) {
        return 'CUSTOMERIO_SITE_ID is of the Track API: the Pipelines API takes CUSTOMERIO_API_KEY alone, the key of a source'
      }
      if (api === 'pipelines' && segment !== undefined) {
        return 'CUSTOMERIO_SEGMENT_ID needs CUSTOMERIO_API=track: the Pipelines API cannot add to a segment'
      }
      const taken = ['id', 'cio_id', 'email', 'first_name', 'last_name', 'created_at']
      const twice = taken.find(name => Object.hasOwn((attributes as object | undefined) ?? {}, name))
      return twice === undefined ? null : `CUSTOMERIO_ATTRIBUTES must be attributes of your own: ${twice} is taken`
    },
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
      MAILERLITE_GROUP_IDS: optional(
        words,
        'More groups to add the contact to.',
        'MailerLite: Subscribers, Groups; the number in the address of each.',
      ),
      MAILERLITE_DOUBLE_OPT_IN: withDefault(
        yesOrNo,
        'false',
        'Whether the contact is unconfirmed until it confirms.',
        'Your choice; MailerLite asks the contact if Account settings, Subscribe settings, Double opt-in for API and integrations is on.',
      ),
      MAILERLITE_BASE_URL: base('https://connect.mailerlite.com'),
    },
    rate: { calls: 120, per: MINUTE, connections: 5 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: ALWAYS, removal: 'later' },
    joins: ['MAILERLITE_GROUP_IDS'],
    contradiction: ({ MAILERLITE_GROUP_ID: group, MAILERLITE_GROUP_IDS: groups }) =>
      (groups as readonly unknown[] | undefined)?.includes(group)
        ? 'MAILERLITE_GROUP_IDS must not have the group of MAILERLITE_GROUP_ID: it would start the automation too early'
        : null,
  },
  beehiiv: {
    title: 'beehiiv',
    settings: {
      BEEHIIV_API_KEY: required(word, 'API key.', 'beehiiv: Settings, API, Create new API key.'),
      BEEHIIV_PUBLICATION_ID: required(
        shaped(/^pub_[\w-]{1,100}$/, 'must begin with pub_'),
        'Publication that holds the list (pub_…).',
        'beehiiv: Settings, API, Publication ID (API V2).',
      ),
      BEEHIIV_TAGS: optional(names, 'Tags to give to the contact; new ones are made.', 'beehiiv: Audience, Tags.'),
      BEEHIIV_FIRST_NAME_FIELD: optional(
        line(100),
        'Custom field for the first name, such as First Name.',
        'beehiiv: Audience, Custom fields; the name.',
      ),
      BEEHIIV_LAST_NAME_FIELD: optional(
        line(100),
        'Custom field for the rest of the name, such as Last Name.',
        'beehiiv: Audience, Custom fields; the name.',
      ),
      BEEHIIV_DOUBLE_OPT_OVERRIDE: optional(
        oneOf('on', 'off', 'not_set'),
        'Whether beehiiv asks the contact to confirm, whatever the publication says: on, off or not_set.',
        'Your choice.',
      ),
      BEEHIIV_SEND_WELCOME_EMAIL: withDefault(
        yesOrNo,
        'false',
        'Whether the welcome email of the publication is sent.',
        'Your choice.',
      ),
      BEEHIIV_AUTOMATION_ID: optional(
        word,
        'Automation to start for a new contact (aut_…); it needs the trigger Add by API.',
        'beehiiv: Automations; the id in its address.',
      ),
      BEEHIIV_BASE_URL: base('https://api.beehiiv.com/v2'),
    },
    rate: { calls: 180, per: MINUTE, connections: 5 },
    promises: { newness: 'best effort', scope: 'list', recognisesOwn: true, repeatable: 0, removal: 'at once' },
    joins: ['BEEHIIV_TAGS'],
  },
  ghost: {
    title: 'Ghost',
    settings: {
      GHOST_BASE_URL: required(
        site('/ghost'),
        'Address of the site or its admin, without /ghost.',
        'Ghost: Settings, Integrations, your custom integration, API URL.',
      ),
      GHOST_ADMIN_API_KEY: required(
        shaped(
          /^[0-9a-f]{24}:[0-9a-f]{64}$/,
          'must be an Admin API key: 24 hexadecimal digits, a colon and 64 hexadecimal digits',
        ),
        'Admin API key of a custom integration.',
        'Ghost: Settings, Integrations, Add custom integration, Admin API key.',
      ),
      GHOST_LABELS: optional(
        names,
        'Labels to give to the member; new ones are made.',
        'Ghost: Members, Filter, Label.',
      ),
      GHOST_NEWSLETTER_IDS: optional(
        words,
        'Newsletters to subscribe the member to, instead of those that Ghost chooses for new members.',
        'Ghost: Settings, Newsletters; the id in its address.',
      ),
      GHOST_EMAIL_TYPE: optional(
        oneOf('signin', 'signup', 'subscribe'),
        'Mail with a link to sign in that Ghost sends to a new member: signin, signup or subscribe; unset: none.',
        'Your choice.',
      ),
    },
    rate: { calls: 20, per: SECOND, connections: 5 },
    promises: { newness: 'atomic', scope: 'account', recognisesOwn: true, repeatable: null, removal: 'at once' },
    joins: ['GHOST_LABELS'],
  },
} as const satisfies Readonly<Record<string, Vendor>>

export type VendorName = keyof typeof vendors
export const vendorNames = Object.keys(vendors) as readonly VendorName[]

export type SettingsOf<Name extends VendorName> = ValuesOf<(typeof vendors)[Name]['settings']>
