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

const offline = 'You are offline. Please try again when you are connected.'

/**
 * A form that signs a visitor up at a Waitlist, on this origin or another one: `<Waitlist service="https://…" />`. It needs
 * React 19, which puts the style into the head, once.
 */
export function Waitlist({ service, label = 'Join the waitlist', onJoined }: WaitlistProps) {
  const id = useId()
  const status = useRef<HTMLParagraphElement>(null)
  const busy = useRef(false)
  const [isReady, setReady] = useState(false)
  const [hints, setHints] = useState({ name: '', email: '' })
  const [{ state, sentence }, setSaid] = useState<{ state: State; sentence: string }>({ state: 'ready', sentence: '' })
  /** Until when the service wants no more attempts, and how many seconds that is from now. */
  const [until, setUntil] = useState(0)
  const [left, setLeft] = useState(0)

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
    if (sentence !== '') status.current?.scrollIntoView({ block: 'nearest' })
    if (state === 'done') status.current?.focus()
  }, [state, sentence])

  useEffect(() => {
    if (until === 0) return
    const timer = setInterval(() => {
      const seconds = Math.ceil((until - Date.now()) / 1000)
      setLeft(seconds)
      if (seconds > 0) return
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
        say('waiting', sentence)
        setLeft(seconds)
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
    <form className="waitlist" data-state={state} noValidate onSubmit={submit}>
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
        {state === 'waiting' && left > 0 ? `Try again in ${left} s` : label}
      </button>
      <p role="status" tabIndex={-1} ref={status}>
        {sentence}
      </p>
    </form>
  )
}

const style = `
  .waitlist { --accent: light-dark(#3547c8, #aab4ff); --on-accent: light-dark(#fff, #10142e); --error: light-dark(#b3261e, #ffb4ab); display: grid; max-width: 26rem }
  .waitlist label { font-weight: 600 }
  .waitlist :is(input, button) { box-sizing: border-box; width: 100%; min-height: 3rem; margin: .25rem 0 0; padding: .5rem .75rem; font: inherit; font-size: max(1rem, 16px); color: inherit; background: transparent; border: 1px solid color-mix(in srgb, currentColor 55%, transparent); border-radius: .5rem }
  .waitlist button { padding-inline: 1.5rem; font-weight: 600; color: var(--on-accent); background: var(--accent); border-color: var(--accent); cursor: pointer }
  .waitlist button:is(:disabled, [aria-disabled=true]) { color: inherit; background: transparent; cursor: default }
  .waitlist :focus-visible { outline: 3px solid var(--accent); outline-offset: 2px }
  .waitlist [aria-invalid=true] { border: 2px solid var(--error) }
  .waitlist p { min-height: 1.5em; margin: .25rem 0; line-height: 1.5; overflow-wrap: anywhere }
  .waitlist .hint { font-size: .875rem }
  .waitlist .hint, .waitlist[data-state=failed] [role=status] { color: var(--error) }
  .waitlist[data-state=done] > :not([role=status]) { display: none }
  .waitlist[data-state=done] [role=status] { display: flex; gap: 1rem; font-size: 1.25rem; font-weight: 600; outline: none }
  .waitlist[data-state=done] [role=status]::before { content: ''; flex: none; width: .35em; height: .75em; margin-inline-start: .25em; border: solid var(--accent); border-width: 0 .2em .2em 0; rotate: 45deg }
  @media (prefers-reduced-motion: no-preference) {
    .waitlist[data-state=sending] button { background: linear-gradient(90deg, transparent 40%, color-mix(in srgb, var(--accent) 30%, transparent), transparent 60%) 0 / 300%; animation: waitlist 1.5s linear infinite }
    @keyframes waitlist { from { background-position: 100% } }
  }
`
