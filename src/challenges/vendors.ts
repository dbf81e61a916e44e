import type { Widget } from './index.ts'

/** One vendor: what a page has of it, and how its verifier is asked. */
export interface Vendor {
  readonly title: string
  /** Null: it is self-hosted. */
  readonly url: string | null
  /** The member of a form that its widget fills. */
  readonly member: string
  /** Whether it takes a form, with the visitor's address; otherwise JSON. */
  readonly takesForm: boolean
  /** What its verifier says of a wrong secret, as "status codes". No visitor can bring this about. */
  readonly refusesSecret: RegExp
  readonly script: string
  /** `key`: the site key; of Cap the address with it. */
  widget(key: string): Omit<Widget, 'script'>
}

const box = (api: string, kind: string) => (key: string) => ({
  ...{ api, isModule: false, tag: 'div', attributes: { class: kind, 'data-sitekey': key } },
})

export const vendors = {
  /** https://developers.cloudflare.com/turnstile/get-started/server-side-validation/ */
  turnstile: {
    title: 'Turnstile',
    url: 'https://challenges.cloudflare.com/turnstile/v0/siteverify',
    member: 'cf-turnstile-response',
    takesForm: true,
    refusesSecret: /-input-secret/,
    script: 'https://challenges.cloudflare.com/turnstile/v0/api.js',
    widget: box('turnstile', 'cf-turnstile'),
  },
  /** https://docs.hcaptcha.com/, "Verify the User Response Server Side" */
  hcaptcha: {
    title: 'hCaptcha',
    url: 'https://api.hcaptcha.com/siteverify',
    member: 'h-captcha-response',
    takesForm: true,
    refusesSecret: /-input-secret/,
    script: 'https://js.hcaptcha.com/1/api.js',
    widget: box('hcaptcha', 'h-captcha'),
  },
  /** https://capjs.js.org/guide/standalone/, "Server-side". A 404 with the same words is about the site key of the token. */
  cap: {
    title: 'Cap',
    url: null,
    member: 'cap-token',
    takesForm: false,
    refusesSecret: /^403 Invalid site key or secret/,
    script: 'https://cdn.jsdelivr.net/npm/cap-widget@0.1.57',
    widget: endpoint => ({
      ...{ api: null, isModule: true, tag: 'cap-widget', attributes: { 'data-cap-api-endpoint': endpoint } },
    }),
  },
} as const satisfies Readonly<Record<string, Vendor>>
