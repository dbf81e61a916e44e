import { readFileSync } from 'node:fs'
import type { Widget } from '../../../waitlist/ports/challenge.ts'
import type { Sample } from './commonmark.ts'

/** The challenge that a form has its visitors solve. */
export interface FormChallenge {
  readonly widget: Widget
  /** The member that has the solution. */
  readonly member: string
  /** Whether this service makes challenges, for ALTCHA's widget. */
  readonly isOurs: boolean
}

const form = readFileSync(new URL('./form.html', import.meta.url), 'utf8').trimEnd()

/** A form to paste into a page. It hands on the query of its page, so that a copy stays good when sources are tracked. */
export function formSample(base: string, challenge: FormChallenge | null): Sample {
  const changes: Change[] = [
    ['https://waitlist.example.com', base],
    ...(challenge === null ? [] : challenged(challenge)),
  ]
  return { language: 'html', code: changes.reduce((code, [from, to]) => code.replace(from, () => to), form) }
}

type Change = readonly [from: string, to: string]

/** What a widget needs. It has fields of its own, which the form must not take for those of a person. */
function challenged({ widget: { script, element, pending, reset }, member, isOurs }: FormChallenge): Change[] {
  const changes: Change[] = [
    ['  <button ', `  ${element}\n  <button `],
    ['.waitlist label {', '.waitlist > label {'],
    ['.waitlist :is(input, button) {', '.waitlist > :is(input, button) {'],
    ['.waitlist p {', '.waitlist > p {'],
    ['<script ', `${script}\n\n<script `],
    ['=> target.value?.trim() &&', '=> [name, email].includes(target) && target.value.trim() &&'],
    ['{ name: name.value, email: email.value }', 'Object.fromEntries(new FormData(form))'],
    [
      `response.status === 400 && input) {`,
      `response.status === 400) {
        ${reset}
        if (!input) return say('failed', sentence)`,
    ],
  ]
  const sending = `    say('sending', 'One moment …')\n`
  const field = `new FormData(form).get('${member}')`
  const isUnsolved = pending === undefined ? `!${field}` : `${field}?.startsWith('${pending}') ?? true`
  const unsolved = `if (${isUnsolved}) return say('failed', 'Please solve the challenge, or wait until it is solved.')`
  return changes.concat(isOurs ? solving(sending) : [[sending, `    ${unsolved}\n${sending}`]])
}

/** As in examples/landing-altcha, where the worker is a file of its own. */
const solving = (sending: string): Change[] => [
  [
    '  @media ',
    `  .waitlist altcha-widget { --altcha-max-width: 100%; --altcha-color-base: Canvas; --altcha-color-base-content: CanvasText; --altcha-border-radius: .5rem; margin: .25rem 0 1rem }
  .waitlist .altcha-popover { position: static; margin-top: .5rem }
  @media `,
  ],
  [
    "  const status = form.querySelector('[role=status]')\n",
    `  const status = form.querySelector('[role=status]')
  const widget = form.querySelector('altcha-widget')\n`,
  ],
  [
    '  // A hint comes',
    `  widget.setAttribute('challenge', \`\${form.dataset.waitlist}/api/challenge\`)
  const solve = async () => {
    if (widget.getState?.() === 'verifying') await new Promise(resolve => widget.addEventListener('statechange', resolve))
    return widget.getState?.() === 'verified' || widget.verify?.()
  }

  // A hint comes`,
  ],
  [
    sending,
    `${sending}    if (!(await solve())) {
      console.warn(\`No solution. Does altcha.min.js load, is CHALLENGE=altcha set, is \${location.origin} in CORS_ORIGINS?\`)
      return say('failed', navigator.onLine ? 'The challenge could not be loaded or solved. Please try again.' : offline)
    }\n`,
  ],
]
