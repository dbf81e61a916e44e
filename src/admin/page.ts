import { escapeHtml, htmlPage, pageHeaders, styleSheet } from '../http/html.ts'
import { type Counts, type DeliveryCount, LATE, type Stats, statsOf, timezone } from '../store/counts.ts'
import type { Snapshot } from './server.ts'

const style = styleSheet(new URL('./page.css', import.meta.url))
export const headers = pageHeaders(style, "'none'")

interface Problem {
  /** Signups are refused, or nothing recovers by itself. */
  readonly isUrgent?: boolean
  readonly title: string
  readonly text: string
  /** The reason that a destination or a database gave. */
  readonly why?: string | null | undefined
  readonly command?: string
}

/** One page for the launch day, without a script. It names no person. */
export function page(snapshot: Snapshot, { service, version }: { service: string; version: string }): string {
  const { counts } = snapshot
  const stats = counts && statsOf(counts)
  const problems = [...problemsIn(snapshot)].sort((a, b) => Number(b.isUrgent ?? false) - Number(a.isUrgent ?? false))
  const warning = problems.some(({ isUrgent }) => isUrgent) ? '⚠ ' : ''
  const counted = counts === null ? '' : `Counted ${time(counts.at)}. `
  return htmlPage({
    title: `${warning}${stats === null ? '' : `${whole(stats.total)} · `}${cleaned(service)}`,
    style,
    language: 'en',
    direction: 'ltr',
    body: `<header><h1><bdi>${untrusted(service)}</bdi></h1></header>
<main>
${status(snapshot, problems)}
${stats === null ? '' : totals(stats) + chart(stats)}
${deliveries(snapshot)}
</main>
<footer>${counted}Times are in ${timezone()}. Waitlist ${version}. <a href="metrics">Metrics</a></footer>
`,
  })
}

function status({ isDraining }: Snapshot, problems: readonly Problem[]): string {
  if (problems.length === 0) {
    const text = isDraining ? 'Shutting down after requests in flight.' : 'Signups are stored. Nothing needs attention.'
    return `<p class="card good">${text}</p>`
  }
  const items = problems.map(
    ({ isUrgent, title, text, why, command }) => `<li class="card ${isUrgent ? 'urgent' : 'warning'}">
<h3>${title}</h3><p>${text}</p>${why ? `<p><bdi>${untrusted(why, 240)}</bdi></p>` : ''}${command ? `<code>${command}</code>` : ''}</li>`,
  )
  return `<section aria-labelledby="attention"><h2 id="attention">Needs attention</h2><ul>${items.join('\n')}</ul></section>`
}

function* problemsIn({ takesSignups, counts, countsError, destinations }: Snapshot): Generator<Problem> {
  if (!takesSignups) {
    const text = 'Visitors are asked to try again later. The log says why.'
    yield { isUrgent: true, title: 'Signups cannot be stored', text, command: 'waitlist check' }
  }
  if (countsError !== null) {
    const text = 'The totals are missing. Signups are unaffected.'
    yield { title: 'The contacts could not be counted', text, why: countsError }
  }
  if (counts !== null && counts.contacts.held > 0) {
    const reasons = counts.held.map(({ reason, count }) => `${reason} ${whole(count)}`).join(', ')
    const text = `By reason: ${reasons}. Nothing is sent until you release them.`
    yield { title: `${whole(counts.contacts.held)} held`, text, command: 'waitlist list --state held' }
  }
  for (const { name, outage } of destinations) {
    if (outage === null) continue
    const isUrgent = outage === 'misconfigured'
    const end = isUrgent ? 'correct the key or the setting, and restart the service' : 'deliveries are retried'
    const why = counts && countOf(counts, name, 'waiting')?.why
    const title = `${untrusted(name)} ${outages[outage]}`
    yield { isUrgent, title, text: `Nothing is lost: ${end}.`, why, command: 'waitlist check' }
  }
  if (counts !== null) yield* deliveryProblems(counts, destinations)
}

function* deliveryProblems({ at, deliveries }: Counts, destinations: Snapshot['destinations']): Generator<Problem> {
  for (const { destination, state, count, oldest, why } of deliveries) {
    const set = destinations.find(({ name }) => name === destination)
    const name = untrusted(destination)
    const age = oldest === null ? 0 : at.getTime() - oldest.getTime()
    const command = `waitlist deliveries --state ${state}`
    if (state === 'abandoned') {
      const title = `${whole(count)} abandoned for ${name}`
      yield { title, text: 'Replay them when the cause is gone.', why, command }
    } else if (state === 'waiting' && set === undefined) {
      yield {
        title: `${name} is not set`,
        text: `${whole(count)} deliveries wait until it is set again.`,
        why,
        command,
      }
    } else if (state === 'waiting' && set?.outage === null && age > LATE) {
      const text = `${whole(count)} deliveries wait, the oldest for ${duration(age)}.`
      yield { title: `${name} is late`, text, why, command }
    }
  }
}

function totals({ total, today, last7Days, last30Days, ...states }: Stats): string {
  const item = (name: string, count: number) => `<div><dt>${name}</dt><dd>${whole(count)}</dd></div>`
  const shown = (['listed', 'pending', 'invited', 'redeemed', 'held', 'unconfirmed'] as const).filter(
    state => states[state] > 0,
  )
  return `<section class="card" aria-labelledby="total"><h2 id="total">On the list</h2><p class="number">${whole(total)}</p>
<dl>${item('Today', today)}${item('Last 7 days', last7Days)}${item('Last 30 days', last30Days)}
${shown.map(state => item(state[0]!.toUpperCase() + state.slice(1), states[state])).join('')}</dl></section>`
}

function chart({ perHour }: Stats): string {
  const most = Math.max(1, ...perHour.map(({ count }) => count))
  const sum = perHour.reduce((sum, { count }) => sum + count, 0)
  const bars = perHour.map(({ from, count }, i) => {
    const height = count === 0 ? 0 : Math.max(1, (100 * count) / most)
    const place = `x="${i * 10 + 1}" y="${(100 - height).toFixed(1)}" width="8" height="${height.toFixed(1)}"`
    return `<rect ${place}><title>${time(from)}: ${whole(count)}</title></rect>`
  })
  const text = sum === 0 ? 'none in 48 hours' : `${whole(sum)} in 48 hours, at most ${whole(most)} in an hour`
  return `<section class="card" aria-labelledby="chart"><h2 id="chart">Signups per hour</h2><p>${text}</p>
<svg viewBox="0 0 480 100" preserveAspectRatio="none" role="img" aria-label="Signups per hour: ${text}">${bars.join('')}</svg></section>`
}

const outages = { unreachable: 'does not answer', misconfigured: 'refuses our key or settings' }

function deliveries({ counts, destinations }: Snapshot): string {
  const configured = new Map(destinations.map(({ name, outage }) => [name, outage === null ? 'ok' : outages[outage]]))
  const names = new Set([...configured.keys(), ...(counts?.deliveries ?? []).map(({ destination }) => destination)])
  if (names.size === 0) {
    return '<section class="card"><h2>Deliveries</h2><p>No provider, webhook, mail or chat is configured.</p></section>'
  }
  const rows = [...names].map(name => {
    const cells = (['delivered', 'waiting', 'abandoned'] as const).map(state => {
      const { count = 0, oldest = null } = (counts && countOf(counts, name, state)) ?? {}
      const age = oldest && ` <small>for ${duration(counts!.at.getTime() - oldest.getTime())}</small>`
      return `<td>${counts === null ? '–' : whole(count)}${age ?? ''}</td>`
    })
    return `<tr><th scope="row"><bdi>${untrusted(name)}</bdi> <small>${configured.get(name) ?? 'not set'}</small></th>${cells.join('')}</tr>`
  })
  return `<section class="card"><h2>Deliveries</h2><table>
<thead><tr>${['To', 'Delivered', 'Waiting', 'Abandoned'].map(head => `<th scope="col">${head}</th>`).join('')}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table></section>`
}

const countOf = ({ deliveries }: Counts, name: string, state: DeliveryCount['state']) =>
  deliveries.find(each => each.destination === name && each.state === state)

const whole = (count: number): string => count.toLocaleString('en')

function duration(milliseconds: number): string {
  const minutes = Math.floor(Math.max(0, milliseconds) / 60_000)
  if (minutes < 120) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`
}

const time = (date: Date): string =>
  date.toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })

/** Text that we did not write: without characters that break lines or change direction, and cut. */
const cleaned = (text: string, longest = 100): string =>
  text.replaceAll(/[\p{C}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '').slice(0, longest)

const untrusted = (text: string, longest?: number): string => escapeHtml(cleaned(text, longest))
