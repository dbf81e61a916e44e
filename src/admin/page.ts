import { readFileSync } from 'node:fs'
import { escapeHtml, hashSource } from '../http/html.ts'
import { type Counts, type DeliveryCount, type Stats, statsOf, timezone } from '../store/counts.ts'
import type { Snapshot } from './server.ts'

const style = readFileSync(new URL('./page.css', import.meta.url), 'utf8')

/** Allows the page its own style, by its hash, and nothing else. */
export const policy =
  `default-src 'none'; style-src ${hashSource(style)}; ` +
  "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

interface Problem {
  /** Signups are refused, or nothing recovers by itself. */
  readonly isUrgent: boolean
  readonly title: string
  readonly text: string
  /** The reason that a destination or a database gave. */
  readonly why?: string | null | undefined
  readonly command?: string
}

/** Bytes. The embedded store takes no signups with less than 64 MiB. */
const LITTLE_SPACE = 1_000_000_000
/** Milliseconds. A receiver that restarts is back long before. */
const LATE = 60 * 60_000

/** One page for the launch day, without a script. It names no person. */
export function page(snapshot: Snapshot, options: { service: string; version: string; refreshes: boolean }): string {
  const { service, version, refreshes } = options
  const { counts } = snapshot
  const stats = counts && statsOf(counts)
  const problems = problemsIn(snapshot).sort((a, b) => Number(b.isUrgent) - Number(a.isUrgent))
  const warning = problems.some(({ isUrgent }) => isUrgent) ? '⚠ ' : ''
  const title = `${warning}${stats === null ? '' : `${whole(stats.total)} · `}${untrusted(service)}`
  const toggle = refreshes ? '<a href="?refresh=off">Pause</a>' : '<a href=".">Resume</a>'
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<link rel="icon" href="data:,">
<style>${style}</style>
<header><h1><bdi>${untrusted(service)}</bdi></h1><p>${refreshes ? 'Refreshed every 5 s' : 'Paused'} ${toggle}</p></header>
<main>
${status(snapshot, problems)}
${stats === null ? '' : totals(stats) + chart(stats)}
${deliveries(snapshot)}
</main>
<footer>${counts === null ? '' : `Counted ${time(counts.at)}. `}Times are in ${timezone()}. Waitlist ${version}. <a href="metrics">Metrics</a></footer>
</html>
`
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
  return `<section aria-labelledby="attention"><h2 id="attention">Needs attention</h2><ul class="problems">${items.join('\n')}</ul></section>`
}

function problemsIn({ store, counts, countsError, destinations }: Snapshot): Problem[] {
  const problems: Problem[] = []
  if (!store.takesSignups) {
    const text = 'Visitors are asked to try again later. The log says why.'
    problems.push({ isUrgent: true, title: 'Signups cannot be stored', text, command: 'waitlist check' })
  }
  if (store.freeBytes !== null && store.freeBytes < LITTLE_SPACE) {
    const text = `${whole(Math.floor(store.freeBytes / 1e6))} MB are free for the database. When it is full, signups are refused.`
    problems.push({ isUrgent: false, title: 'The disk is almost full', text })
  }
  if (countsError !== null) {
    const text = 'The totals are missing. Signups are unaffected.'
    problems.push({ isUrgent: false, title: 'The contacts could not be counted', text, why: countsError })
  }
  if (counts !== null && counts.contacts.held > 0) problems.push(heldProblem(counts))
  for (const { name, outage } of destinations) {
    if (outage === null) continue
    const why = counts && countOf(counts, name, 'waiting')?.why
    const title = `${untrusted(name)} ${states[outage]}`
    const text =
      outage === 'unreachable'
        ? 'Nothing is lost: deliveries are retried until it answers.'
        : 'Nothing is lost: correct the key or the setting, and restart the service.'
    problems.push({ isUrgent: outage === 'misconfigured', title, text, why, command: 'waitlist check' })
  }
  return counts === null ? problems : [...problems, ...deliveryProblems(counts, destinations)]
}

function heldProblem({ contacts, held }: Counts): Problem {
  const reasons = held.map(({ reason, count }) => `${reason} ${whole(count)}`).join(', ')
  const text = `By reason: ${reasons}. Nothing is sent until you release them.`
  return { isUrgent: false, title: `${whole(contacts.held)} held`, text, command: 'waitlist list --state held' }
}

function* deliveryProblems({ at, deliveries }: Counts, destinations: Snapshot['destinations']): Generator<Problem> {
  for (const { destination, state, count, oldest, why } of deliveries) {
    const set = destinations.find(({ name }) => name === destination)
    const name = untrusted(destination)
    const age = oldest === null ? 0 : at.getTime() - oldest.getTime()
    const command = `waitlist deliveries --state ${state}`
    const problem = (title: string, text: string) => ({ isUrgent: false, title, text, why, command })
    if (state === 'abandoned') {
      yield problem(`${whole(count)} abandoned for ${name}`, 'Replay them when the cause is gone.')
    } else if (state === 'waiting' && set === undefined) {
      yield problem(`${name} is not set`, `${whole(count)} deliveries wait until it is set again.`)
    } else if (state === 'waiting' && set?.outage === null && age > LATE) {
      yield problem(`${name} is late`, `${whole(count)} deliveries wait, the oldest for ${duration(age)}.`)
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
<svg viewBox="0 0 480 100" preserveAspectRatio="none" role="img" aria-label="Signups per hour: ${text}">${bars.join('')}</svg>
<p class="axis"><span>${time(perHour[0]!.from)}</span><span>now</span></p></section>`
}

const states = { unreachable: 'does not answer', misconfigured: 'refuses our key or settings' }

function deliveries({ counts, destinations }: Snapshot): string {
  const configured = new Map(destinations.map(({ name, outage }) => [name, outage === null ? 'ok' : states[outage]]))
  const names = new Set([...configured.keys(), ...(counts?.deliveries ?? []).map(({ destination }) => destination)])
  if (names.size === 0) {
    return '<section class="card"><h2>Deliveries</h2><p>No provider, webhook, mail or chat is configured.</p></section>'
  }
  const rows = [...names].map(name => {
    const [delivered, waiting, abandoned] = (['delivered', 'waiting', 'abandoned'] as const).map(
      state => counts && countOf(counts, name, state),
    )
    const number = (of: DeliveryCount | null | undefined) => (counts === null ? '–' : whole(of?.count ?? 0))
    const age = waiting?.oldest
      ? ` <small>for ${duration(counts!.at.getTime() - waiting.oldest.getTime())}</small>`
      : ''
    return `<tr><th scope="row"><bdi>${untrusted(name)}</bdi> <small>${configured.get(name) ?? 'not set'}</small></th>
<td>${number(delivered)}</td><td>${number(waiting)}${age}</td><td>${number(abandoned)}</td></tr>`
  })
  return `<section class="card"><h2>Deliveries</h2><table>
<thead><tr>${['To', 'Delivered', 'Waiting', 'Abandoned'].map(head => `<th scope="col">${head}</th>`).join('')}</tr></thead>
<tbody>${rows.join('\n')}</tbody></table></section>`
}

const countOf = ({ deliveries }: Counts, name: string, state: DeliveryCount['state']) =>
  deliveries.find(each => each.destination === name && each.state === state)

const grouped = new Intl.NumberFormat('en')
const whole = (count: number): string => grouped.format(count)

function duration(milliseconds: number): string {
  const minutes = Math.floor(Math.max(0, milliseconds) / 60_000)
  if (minutes < 120) return `${minutes} min`
  return minutes < 48 * 60 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1_440)} days`
}

const time = (date: Date): string =>
  date.toLocaleString('en-GB', { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' })

/** Text that we did not write: without characters that break lines or change direction, cut, and escaped. */
const untrusted = (text: string, longest = 100): string =>
  escapeHtml(text.replaceAll(/[\p{C}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '').slice(0, longest))
