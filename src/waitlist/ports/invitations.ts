/** What the owner's app asks of the store about the code of an invitation. */
export interface Invitations {
  /** Null: it is nobody's. */
  invitation(code: string): Promise<Redeemable | null>

  /** The same, and redeems it if it was not yet: resolves when that is synced. Any number of calls leave one time. */
  redeem(code: string): Promise<Redeemable | null>
}

/** An invitation, as the owner's app sees it. */
export interface Redeemable {
  readonly email: string
  readonly name: string
  readonly invitedAt: Date
  /** Null: not yet. */
  readonly redeemedAt: Date | null
}
