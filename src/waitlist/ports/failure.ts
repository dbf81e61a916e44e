/**
 * Why an outbound call failed. `why` is for the log and contains no address, name or secret. `retryAfter` is the wait
 * that the other side asked for, in milliseconds.
 */
export type Failure =
  /** Certainly without effect: no connection, too many requests, our own limits. */
  | {
      readonly is: 'unreached'
      readonly why: string
      readonly retryAfter?: number | undefined
      /** Our own limits kept the call back, which says nothing about the other side. */
      readonly notSent?: true | undefined
      /** The other side answers, and holds back this delivery alone. */
      readonly alone?: true
    }
  /** It may have taken effect: cut off or timed out after it was sent, a server error, an answer that makes no sense. */
  | {
      readonly is: 'unclear'
      readonly why: string
      readonly retryAfter?: number | undefined
      /** Our own limits kept a later call back, after an earlier one took effect. */
      readonly notSent?: true | undefined
    }
  /** Our key or our settings are refused: the operator must fix them. */
  | {
      readonly is: 'misconfigured'
      readonly why: string
      /** Part of it took effect: the contact may exist already. */
      readonly tookEffect?: true
    }
