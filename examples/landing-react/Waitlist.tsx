import { type FocusEvent, type FormEvent, useEffect, useId, useRef, useState } from 'react'

export interface WaitlistProps {
  /** The address of your Waitlist, such as `https://waitlist.example.com`, without a slash at the end. */
  readonly service: string
  readonly label?: string
  /** Called once when the visitor is on the list, or saved to be on it shortly. */
  readonly onJoined?: (outcome: 'new' | 'known' | 'saved') => void
}

type State = 'ready' | 'sending' | 'waiting' | 'failed' | 'done'
type Field = 'name' | 'email'

const address =
  /^(?!\.)(?!.*\.[.@])[\w!#$%&'*+/=?^`{|}~.-]+@((?!-)[a-z\d-]{1,63}(?<!-)\.)+(?![\d-])[a-z\d-]{1,63}(?<!-)$/i

/** The rules of the service. Empty: all is well. */
function problemOf(field: Field, value: string): string {
  const text = value.trim()
  const [what, most] = field === 'name' ? (['name', 100] as const) : (['email address', 255] as const)
  if (text === '') return `Please enter your ${what}.`
  if ([...text].length > most) return `Please use at most ${most} characters.`
  return field === 'name' || address.test(text) ? '' : 'Please check this email address.'
}

const tooMany = (left: number) =>
  `Too many attempts. You can try again in ${left > 90 ? `${Math.ceil(left / 60)} min` : `${left} s`}.`

const offline = 'You are offline. Please try again when you are connected.'

/**
 * A form that signs a visitor up at a Waitlist, on this origin or another one: `<Waitlist service="https://…" />`. It needs
 * React 19, which puts the style into the head, once.
 */
export function Waitlist({ service, label = 'Join the waitlist', onJoined }: WaitlistProps) {
  const id = useId()
  const form = useRef<HTMLFormElement>(null)
  const status = useRef<HTMLParagraphElement>(null)
  const busy = useRef(false)
  const [isReady, setReady] = useState(false)
  const [hints, setHints] = useState({ name: '', email: '' })
  const [{ state, sentence }, setSaid] = useState<{ state: State; sentence: string }>({ state: 'ready', sentence: '' })
  /** Who joined, and how high the form was: the page does not move when its fields go. */
  const [joined, setJoined] = useState<{ name: string; email: string; height: number } | null>(null)
  /** Until when the service wants no more attempts. */
  const [until, setUntil] = useState(0)

  const say = (state: State, sentence: string) => {
    busy.current = state === 'sending' || state === 'waiting'
    setSaid({ state, sentence })
  }
  const hint = (field: Field, problem: string) => {
    setHints(all => ({ ...all, [field]: problem }))
    return problem === ''
  }

  // Before this the page is only HTML, and nothing would take the submission.
  useEffect(() => setReady(true), [])

  useEffect(() => {
    if (state !== 'ready') status.current?.scrollIntoView({ block: 'nearest' })
    if (state === 'done') status.current?.focus()
  }, [state])

  useEffect(() => {
    if (until === 0) return
    const timer = setInterval(() => {
      const left = Math.ceil((until - Date.now()) / 1000)
      // Read aloud once, not every second.
      if (status.current) status.current.ariaLive = left > 0 ? 'off' : 'polite'
      if (left > 0) return setSaid({ state: 'waiting', sentence: tooMany(left) })
      setUntil(0)
      busy.current = false
      setSaid({ state: 'ready', sentence: 'You can try again now.' })
    }, 500)
    return () => clearInterval(timer)
  }, [until])

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault()
    if (busy.current) return
    const { name, email } = event.currentTarget.elements as unknown as Record<Field, HTMLInputElement>
    const wrong = [name, email].filter(input => !hint(input.name as Field, problemOf(input.name as Field, input.value)))
    say('ready', '')
    if (wrong.length > 0) return wrong[0]?.focus()
    if (!navigator.onLine) return say('failed', offline)

    say('sending', 'One moment …')
    const bound = new AbortController()
    const timers = [
      setTimeout(say, 4_000, 'sending', 'This takes longer than usual …'),
      setTimeout(() => bound.abort(), 30_000),
    ]
    const done = (outcome: 'new' | 'known' | 'saved', sentence: string) => {
      setJoined({ name: name.value.trim(), email: email.value.trim(), height: form.current?.offsetHeight ?? 0 })
      say('done', sentence)
      onJoined?.(outcome)
    }
    try {
      const response = await fetch(`${service}/api/waitlist${location.search}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        credentials: 'include',
        body: JSON.stringify({ name: name.value, email: email.value }),
        signal: bound.signal,
      })
      const answer = await response.json().catch(() => ({}))
      const { success, message = 'You are on the waitlist.', error = 'that did not work', alreadyExisted } = answer
      const sentence = `${error[0].toUpperCase()}${error.slice(1)}.`
      const input = { name, email }[/\b(name|email)\b/.exec(error)?.[0] as Field]
      if (success) done(alreadyExisted ? 'known' : 'new', message)
      // An error for us, but not for the visitor: the signup is stored, and only its completion is late.
      else if (response.headers.get('Waitlist-Signup') === 'saved') {
        done('saved', 'Your signup is saved. You will be on the waitlist shortly.')
      } else if (response.status === 429) {
        const seconds = Number(response.headers.get('Retry-After')) || 60
        say('waiting', tooMany(seconds))
        setUntil(Date.now() + seconds * 1000)
      } else if (response.status === 400 && input) {
        say('ready', '')
        hint(input.name as Field, sentence)
        input.focus()
      } else say('failed', sentence)
    } catch {
      if (bound.signal.aborted) {
        return say(
          'failed',
          'No answer came, so we do not know whether it arrived. Trying again is safe: nobody is listed twice.',
        )
      }
      if (!navigator.onLine) return say('failed', offline)
      say('failed', 'The waitlist could not be reached. Please try again.')
      console.warn(
        `No answer of ${service} that this page may read. Is it running, and is ${location.origin} in its CORS_ORIGINS?`,
      )
    } finally {
      timers.forEach(clearTimeout)
    }
  }

  /** A hint comes when a field is left, and goes while it is put right. */
  const field = (field: Field) => ({
    id: `${id}-${field}`,
    name: field,
    required: true,
    'aria-invalid': hints[field] !== '',
    'aria-describedby': `${id}-${field}-hint`,
    onBlur: ({ target: { value } }: FocusEvent<HTMLInputElement>) => {
      if (value.trim() !== '') hint(field, problemOf(field, value))
    },
    onInput: ({ currentTarget: { value } }: FormEvent<HTMLInputElement>) => {
      if (hints[field] !== '') hint(field, problemOf(field, value))
    },
  })

  return (
    <form
      className="waitlist"
      style={joined === null ? undefined : { minHeight: joined.height }}
      data-state={state}
      noValidate
      ref={form}
      onSubmit={submit}
    >
      <style href="waitlist" precedence="default">
        {style}
      </style>
      <noscript>This form needs JavaScript, which is off in this browser.</noscript>
      <label htmlFor={`${id}-name`}>Name</label>
      <input autoComplete="name" dir="auto" {...field('name')} />
      <p id={`${id}-name-hint`} className="hint">
        {hints.name}
      </p>
      <label htmlFor={`${id}-email`}>Email</label>
      <input type="email" autoComplete="email" autoCapitalize="none" spellCheck={false} {...field('email')} />
      <p id={`${id}-email-hint`} className="hint">
        {hints.email}
      </p>
      <button type="submit" disabled={!isReady} aria-disabled={state === 'sending' || state === 'waiting'}>
        {label}
      </button>
      <p role="status" tabIndex={-1} ref={status}>
        {joined === null ? (
          sentence
        ) : (
          <>
            <strong>
              Thank you, <bdi>{joined.name}</bdi>.
            </strong>
            <span>{sentence}</span>
            <span>
              We will write to <bdi>{joined.email}</bdi> when it is your turn.
            </span>
          </>
        )}
      </p>
    </form>
  )
}

const style = `
  .waitlist { --accent: light-dark(#3547c8, #aab4ff); --on-accent: light-dark(#fff, #10142e); --error: light-dark(#b3261e, #ffb4ab); display: grid; max-width: 26rem; line-height: 1.5 }
  .waitlist label { font-weight: 600 }
  .waitlist :is(input, button) { box-sizing: border-box; width: 100%; min-height: 3rem; margin: .25rem 0 0; padding: .5rem .75rem; font: inherit; font-size: max(1rem, 16px); color: inherit; background: transparent; border: 1px solid color-mix(in srgb, currentColor 55%, transparent); border-radius: .5rem }
  .waitlist button { padding-inline: 1.5rem; font-weight: 600; color: var(--on-accent); background: var(--accent); border-color: var(--accent); cursor: pointer }
  .waitlist button:is(:disabled, [aria-disabled=true]) { color: inherit; background: transparent; cursor: default }
  .waitlist :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
  .waitlist [aria-invalid=true] { border: 2px solid var(--error) }
  .waitlist p { min-height: 1.5em; margin: .25rem 0; overflow-wrap: anywhere }
  .waitlist .hint { margin: .375rem 0 .125rem; font-size: .875rem }
  .waitlist [role=status] { margin-block: .75rem .5rem; font-variant-numeric: tabular-nums }
  .waitlist .hint, .waitlist[data-state=failed] [role=status] { color: var(--error) }
  .waitlist[data-state=done] {
    align-content: center;
    > :not([role=status]) { display: none }
    [role=status] { display: grid; gap: .25rem; text-align: center; text-wrap: balance; outline: none; background: radial-gradient(circle 1.75rem at 50% 1.75rem, var(--accent) 98%, transparent) }
    [role=status]::before { content: ''; justify-self: center; width: .75rem; height: 1.5rem; margin: .75rem 0 1.75rem; border: solid var(--on-accent); border-width: 0 .25rem .25rem 0; rotate: 45deg }
    strong { font-size: 1.5rem; line-height: 1.25 }
  }
  @media (prefers-reduced-motion: no-preference) {
    .waitlist[data-state=sending] button { background: linear-gradient(90deg, transparent 40%, color-mix(in srgb, var(--accent) 30%, transparent), transparent 60%) 0 / 300%; animation: waitlist-sending 1.5s linear infinite }
    .waitlist[data-state=done] [role=status] { animation: waitlist-done .4s ease-out }
    .waitlist[data-state=done] [role=status]::before { animation: waitlist-tick .4s .2s backwards }
    @keyframes waitlist-sending { from { background-position: 100% } }
    @keyframes waitlist-done { from { opacity: 0; translate: 0 .5rem } }
    @keyframes waitlist-tick { from { clip-path: inset(85% 100% 0 0) } 40% { clip-path: inset(85% 0 0) } }
  }
`
