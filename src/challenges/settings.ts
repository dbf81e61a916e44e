/** What a challenge is opened with. */
export type ChallengeChoice =
  | {
      readonly kind: 'altcha'
      /** Null: one is made and kept in the store. */
      readonly secret: string | null
      /** Guesses at most. */
      readonly range: number
    }
  | {
      readonly kind: 'turnstile' | 'hcaptcha' | 'cap'
      readonly secret: string
      /** What a page has of it; null: it is not told, or it is in the address of Cap. */
      readonly siteKey: string | null
      /** Null: the vendor's own. */
      readonly url: string | null
    }
