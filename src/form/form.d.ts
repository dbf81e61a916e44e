/** Importing this module defines `<waitlist-form>`. Where there is no browser it does nothing. */

export interface JoinedEvent extends CustomEvent {
  /** `new` and `known`: on the list. `saved`: stored by the service, and on the list shortly. */
  readonly detail: { readonly outcome: 'new' | 'known' | 'saved' }
}

export interface WaitlistFormAttributes {
  /** The address of your Waitlist, such as `https://waitlist.example.com`. By default the one that the script came from. */
  service?: string
  /** What the button says. */
  label?: string
}

declare global {
  interface HTMLElementTagNameMap {
    'waitlist-form': HTMLElement
  }
  interface HTMLElementEventMap {
    joined: JoinedEvent
  }
}
