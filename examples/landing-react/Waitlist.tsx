import { type DetailedHTMLProps, type HTMLAttributes, useEffect } from 'react'
import type { JoinedEvent, WaitlistFormAttributes } from 'waitlist/form'

interface FormAttributes extends HTMLAttributes<HTMLElement>, WaitlistFormAttributes {
  onjoined?: ((event: JoinedEvent) => void) | undefined
}
declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      'waitlist-form': DetailedHTMLProps<FormAttributes, HTMLElement>
    }
  }
}

export interface WaitlistProps extends WaitlistFormAttributes {
  /** The visitor is on the list, or saved to be on it shortly. */
  readonly onJoined?: (outcome: JoinedEvent['detail']['outcome']) => void
}

/** `<Waitlist service="https://waitlist.example.com" />`, for React 19. */
export function Waitlist({ onJoined, ...attributes }: WaitlistProps) {
  useEffect(() => {
    import('waitlist/form')
  }, [])
  return <waitlist-form {...attributes} onjoined={event => onJoined?.(event.detail.outcome)} />
}
