import type { DetailedHTMLProps, HTMLAttributes } from 'react'

interface JoinedEvent extends CustomEvent {
  /** `saved`: stored by the service, and on the list shortly. */
  readonly detail: { readonly outcome: 'new' | 'known' | 'saved' }
}

interface FormAttributes extends HTMLAttributes<HTMLElement> {
  /** What the button says. */
  label?: string
  /** In one line, where there is room. */
  inline?: boolean
  onjoined?: (event: JoinedEvent) => void
}

declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'waitlist-form': DetailedHTMLProps<FormAttributes, HTMLElement>
    }
  }
}

/** `<Waitlist service="https://waitlist.example.com" />`, for React 19. */
export function Waitlist({ service, ...attributes }: FormAttributes & { readonly service: string }) {
  return (
    <>
      <script type="module" async src={`${service}/form.js`} />
      <waitlist-form {...attributes}>
        To join the waitlist, write to <a href="mailto:hello@example.com">hello@example.com</a>.
      </waitlist-form>
    </>
  )
}
