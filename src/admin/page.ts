import { colours, hashSource, icon, mark, styleSheet } from '../pages/frame.ts'
import type { CallResult, Outcome } from '../telemetry/telemetry.ts'
import { type DeliveryCount, type Stats, statsOf, timezone } from '../waitlist/alerts/counts.ts'
import { duration, whole } from './axis.ts'
import { bounded, clock, type Filling, type Html, html, moment, share, words } from './html.ts'
import { type Plot, plot } from './plot.ts'
import { type Problem, problemsIn } from './problems.ts'
import type { DestinationReading, Reading } from './reading.ts'

const style = styleSheet(new URL('./page.css', import.meta.url))

/** What the page may load: its own style, by its hash, and its icon. */
export const policy = [
  "default-src 'none'",
  `style-src ${hashSource(style)}`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Seconds until the browser asks again. */
export const REFRESH = 5

export interface PageOptions {
  /** Whether the browser was told to ask again (`REFRESH`), which its reader can stop (WCAG 2.2, 2.2.2). */
  readonly refreshes: boolean
  /** Which of several processes this is. */
  readonly instance: string
}

/** Code points of what others wrote. */
const LONGEST_NAME = 100
const LONGEST_SOURCE = 60
const LONGEST_REASON = 240

/** Sources that are shown each by itself. */
const SOURCES_SHOWN = 12

/** One page for the launch day, without script: what it shows is as old as `reading` says. It names no person. */
export function page(reading: Reading, { refreshes, instance }: PageOptions): string {
  const { service, counts, provider } = reading
  const stats = counts && statsOf(counts)
  const problems = problemsIn(reading)
  const isUrgent = problems.some(problem => problem.isUrgent)
  const title = `${isUrgent ? '⚠ ' : ''}${stats === null ? '' : `${whole(stats.total)} · `}${bounded(service, LONGEST_NAME)}`
  const colour = isUrgent ? colours.alarm : colours.brand
  const head = html`<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<link rel="icon" href="${{ html: icon(colour) }}">
<style>${{ html: style }}</style>`
  const body = html`<header>
<h1>${{ html: mark(colour) }}${words(service, LONGEST_NAME)}</h1>
<p class="refresh"><span>${counts === null ? null : html`as of ${clock(counts.at)}, `}${refreshes ? `refreshed every ${REFRESH} s` : 'paused'}</span> ${refreshes ? html`<a href="?refresh=off">Pause</a>` : html`<a href=".">Go on</a>`}</p>
</header>
<main>
${problems.length === 0 ? allIsWell(reading) : problemsHtml(problems)}
${stats === null ? html`<p class="card empty">The contacts are being counted.</p>` : growth(stats, reading)}
<div class="columns">
${stats === null ? null : sourcesHtml(stats)}
${answersHtml(reading)}
${provider === null ? null : callsHtml(provider, reading)}
</div>
${deliveriesHtml(reading)}
</main>
${footer(reading, instance)}`
  return `<!doctype html>
<html lang="en">
<head>
${head.html}
</head>
<body>
${body.html}
</body>
</html>
`
}

/** Only what is known. */
const allIsWell = ({ store, counts, isDraining }: Reading): Html | null => {
  if (isDraining)
    return html`<p class="fine"><strong>This process stops</strong> as soon as all visitors have their answers.</p>`
  if (store === null) return null
  return html`<p class="fine"><strong>Signups are taken.</strong>${counts === null ? '' : ' Nothing needs you.'}</p>`
}

/** In lines that do not begin within an option. */
const commandHtml = (command: string): Html =>
  html`<code>${command.split(/ (?=--)/).map((part, i) => html`${i === 0 ? '' : ' '}<span>${part}</span>`)}</code>`

const problemsHtml = (problems: readonly Problem[]): Html => html`<section aria-labelledby="problems">
<h2 id="problems">Needs you</h2>
<ul class="problems">
${problems.map(
  ({ isUrgent, title, text, why, commands }) => html`<li class="${isUrgent ? 'urgent' : 'soon'}">
<h3>${words(title, LONGEST_NAME)}</h3>
<p>${text}</p>
${why === null ? null : html`<p class="why">${words(why, LONGEST_REASON)}</p>`}
${commands.map(command => commandHtml(command))}
</li>`,
)}
</ul>
</section>`

function growth(stats: Stats, { provider }: Reading): Html {
  const {
    total,
    listed,
    pending,
    invited,
    redeemed,
    held,
    unconfirmed,
    today,
    last7Days,
    last30Days,
    perMinute,
    perHour,
    perDay,
  } = stats
  const parts: Html[] = []
  if (pending + invited > 0) parts.push(html`<li><b>${whole(listed)}</b> listed</li>`)
  if (pending > 0) {
    const until = words(provider ?? 'the provider', LONGEST_NAME)
    parts.push(html`<li><b>${whole(pending)}</b> pending, until ${until} confirms them</li>`)
  }
  if (invited > 0) parts.push(html`<li><b>${whole(invited)}</b> invited, <b>${whole(redeemed)}</b> of them came</li>`)
  if (held > 0) parts.push(html`<li><b>${whole(held)}</b> <a href="#problems">held</a>, not counted here</li>`)
  if (unconfirmed > 0) parts.push(html`<li><b>${whole(unconfirmed)}</b> unconfirmed, not counted here</li>`)
  const tile = (name: string, count: number) => html`<div><dt>${name}</dt><dd>${whole(count)}</dd></div>`
  return html`<section class="growth" aria-labelledby="growth">
<div class="card total">
<h2 id="growth">On the list</h2>
<p class="number">${whole(total)}</p>
${parts.length === 0 ? null : html`<ul>${parts}</ul>`}
<dl>${[
    tile('Last full minute', perMinute.at(-2)!.count),
    tile('Today', today),
    tile('Last 7 days', last7Days),
    tile('Last 30 days', last30Days),
  ]}</dl>
</div>
${[
  plotHtml({ id: 'minutes', title: 'Signups per minute', bars: perMinute, unit: 'minute' }, 680, 230),
  plotHtml({ id: 'hours', title: 'Signups per hour', bars: perHour, unit: 'hour' }, 560, 210),
  plotHtml({ id: 'days', title: 'Signups per day', bars: perDay, unit: 'day' }, 560, 210),
]}
</section>`
}

type Series = Omit<Plot, 'width' | 'height' | 'text'>

/** Twice, since what is legible in a wide card is not in a narrow one: the style shows one of them. */
function plotHtml(series: Series, width: number, height: number): Html {
  const { id, title, bars, unit } = series
  const most = bars.reduce((best, bar) => Math.max(best, bar.count), 0)
  const sum = bars.reduce((all, bar) => all + bar.count, 0)
  const drawn = (size: string, of: Pick<Plot, 'width' | 'height' | 'text'>) =>
    html`<div class="${size}">${plot({ ...series, id: `${id}-${size}`, ...of })}</div>`
  return html`<figure class="card ${id}">
<figcaption><h3>${title}</h3><p>${sum === 0 ? 'none' : whole(sum)} in ${bars.length} ${unit}s${sum === 0 ? '' : `, ${whole(most)} at most`}</p></figcaption>
${[drawn('wide', { width, height, text: 12 }), drawn('narrow', { width: 320, height: 190, text: 12 })]}
</figure>`
}

/** A part of all as a bar beside its number. A tiny part is still visible. */
const meter = (part: number, all: number): Html =>
  html`<svg class="meter" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="4"/><rect class="part" width="${part === 0 ? 0 : Math.max(0.5, Math.round((1000 * part) / all) / 10)}" height="4"/></svg>`

function sourcesHtml({ sources, sourced, total }: Stats): Html {
  if (sourced === 0) {
    return html`<section class="card"><h2>Where they come from</h2>
<p class="empty">No contact has a known source. With <code>TRACK_SOURCES=true</code> a landing page can name one.</p></section>`
  }
  const shown = sources.slice(0, SOURCES_SHOWN)
  const others = sourced - shown.reduce((sum, { count }) => sum + count, 0)
  const unknown = total - sourced
  const largest = Math.max(others, unknown, ...shown.map(({ count }) => count))
  const row = (name: Html, count: number, kind: string) => html`<tr${{ html: kind === '' ? '' : ` class="${kind}"` }}>
<th scope="row">${name}${meter(count, largest)}</th><td>${whole(count)}</td><td>${share(count, total)}</td></tr>`
  const rows = html`${shown.map(({ source, count }) => row(words(source, LONGEST_SOURCE), count, ''))}
${others > 0 ? row(html`other sources`, others, 'rest') : null}
${unknown > 0 ? row(html`not known`, unknown, 'rest') : null}`
  const caption = 'Contacts by the source of their first signup'
  return tableHtml('Where they come from', caption, ['Source', 'Contacts', 'Share'], rows)
}

const tableHtml = (title: Filling, caption: string, heads: readonly string[], rows: Filling) =>
  html`<section class="card"><h2>${title}</h2>
<table>
<caption>${caption}</caption>
<thead><tr>${heads.map(head => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>
${rows}
</tbody>
</table></section>`

/** What each outcome is called; those of a provider are missing without one, and some until there is one to count. */
const outcomes: readonly (readonly [Outcome, string, ('provider' | 'counted')?])[] = [
  ['new', 'New on the list'],
  ['known', 'On the list already'],
  ['kept', 'Stored, to be confirmed later', 'provider'],
  ['held', 'Held, until you release them', 'counted'],
  ['unconfirmed', 'Asked to confirm their address', 'counted'],
  ['invalid', 'No valid name or address'],
  ['unsolved', 'Challenge not solved', 'counted'],
  ['blocked', 'Email domain not accepted', 'counted'],
  ['refused', 'Address refused by the provider', 'provider'],
  ['limited', 'Too many attempts'],
  ['overloaded', 'Turned away: too many at once'],
  ['failed', 'Failed: not stored'],
]

const calls: readonly (readonly [CallResult, string])[] = [
  ['created', 'Contact created'],
  ['existing', 'Contact was there'],
  ['refused', 'Address refused'],
  ['unreached', 'Not reached'],
  ['unclear', 'No clear answer'],
  ['misconfigured', 'Key or settings refused'],
  ['notSent', 'Held back by our own limits'],
]

/** Numbers of one kind, each with its part of the largest. */
function rows<Name extends string>(
  all: readonly (readonly [Name, string, ...unknown[]])[],
  counts: Record<Name, number>,
) {
  const largest = Math.max(0, ...all.map(([name]) => counts[name]))
  return all.map(([name, title]) => {
    const count = counts[name]
    return html`<tr><th scope="row">${title}${meter(count, largest)}</th><td>${whole(count)}</td></tr>`
  })
}

function answersHtml({ telemetry, provider, startedAt, at }: Reading): Html {
  const all = outcomes.filter(
    ([outcome, , only]) =>
      only === undefined || (only === 'counted' ? telemetry.signups[outcome] > 0 : provider !== null),
  )
  const caption = `By this process, in the ${duration(at.getTime() - startedAt.getTime())} since it started`
  return tableHtml('Signups answered', caption, ['Answer', 'Signups'], rows(all, telemetry.signups))
}

function callsHtml(provider: string, { telemetry }: Reading): Html {
  const title = html`Calls to ${words(provider, LONGEST_NAME)}`
  return tableHtml(title, 'By this process, since it started', ['Result', 'Calls'], rows(calls, telemetry.calls))
}

const columns = ['Destination', 'Delivered', 'Waiting', 'Oldest', 'Abandoned']

const none = html`<span class="none">–</span>`

const states = {
  well: 'no trouble',
  unreachable: 'does not answer',
  misconfigured: 'refuses our settings',
  unset: 'not set',
}

function deliveriesHtml({ destinations, provider, counts }: Reading): Html {
  const deliveries = counts?.deliveries ?? []
  const set = new Set(destinations.map(({ name }) => name))
  const unset = [...new Set(deliveries.map(({ destination }) => destination))].filter(name => !set.has(name))
  if (set.size + unset.length === 0) {
    return html`<section class="card"><h2>Deliveries</h2><p class="empty">No provider, webhook, mail or chat is set: nobody is told of contacts.</p></section>`
  }
  const row = (name: string, state: keyof typeof states) => {
    const of = (state: DeliveryCount['state']) =>
      deliveries.find(each => each.destination === name && each.state === state)
    const [waiting, abandoned] = [of('waiting'), of('abandoned')]
    const cell = (label: string, content: Html) => html`<td role="cell" data-label="${label}">${content}</td>`
    const number = (label: string, count: number, kind = '') =>
      cell(label, html`<span class="${count === 0 ? 'none' : kind}">${whole(count)}</span>`)
    const oldest = waiting?.oldest
    const age = oldest == null ? null : counts!.at.getTime() - oldest.getTime()
    const reasons = [waiting, abandoned].flatMap(each =>
      each?.why == null ? [] : [html`<li><b>${each.state}</b> ${words(each.why, LONGEST_REASON)}</li>`],
    )
    return html`<tr role="row">
<th scope="row" role="rowheader">${words(name, LONGEST_NAME)} <span class="state ${state}">${states[state]}</span>${
      name === provider ? html` <span class="kind">the provider</span>` : null
    }${reasons.length === 0 ? null : html`<ul class="reasons">${reasons}</ul>`}</th>
${[
  // A hand-over that ended is deleted.
  name === provider ? cell('Delivered', none) : number('Delivered', of('delivered')?.count ?? 0),
  number('Waiting', waiting?.count ?? 0, 'waiting'),
  cell('Oldest', age === null ? none : html`<span>${duration(age)} <small>since ${moment(oldest!)}</small></span>`),
  number('Abandoned', abandoned?.count ?? 0, 'abandoned'),
]}
</tr>`
  }
  const stateOf = ({ outage }: DestinationReading) => outage ?? 'well'
  return html`<section class="card"><h2>Deliveries</h2>
<table class="deliveries" role="table">
<caption>Of the whole list, to each destination</caption>
<thead role="rowgroup"><tr role="row">${columns.map(name => html`<th scope="col" role="columnheader">${name}</th>`)}</tr></thead>
<tbody role="rowgroup">
${destinations.map(each => row(each.name, stateOf(each)))}
${unset.map(name => row(name, 'unset'))}
</tbody>
</table></section>`
}

function footer({ counts, countsAge, version, startedAt }: Reading, instance: string): Html {
  const counted =
    counts === null
      ? html`Nothing has been counted yet.`
      : html`Counted at ${clock(counts.at)}, ${duration(countsAge ?? 0)} before this page was made.`
  return html`<footer>
<p>${counted} Times are of ${timezone()}. The contacts, sources and deliveries are those of the whole list; the answers, the calls and whether a destination answers are what this process saw: ${words(instance, LONGEST_NAME)}, Waitlist ${version}, started ${moment(startedAt)}.</p>
<p><a href="metrics">Metrics</a></p>
</footer>`
}
