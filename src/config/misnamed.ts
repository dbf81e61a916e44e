/** Variables whose names are nearly those of settings. */

export interface Named {
  /** Names in the file `.env`, which is for this program alone. */
  readonly inFile: readonly string[]
  /** Variables of the process: most are for other programs. */
  readonly inEnvironment: Readonly<Record<string, string | undefined>>
  /** Settings of this program. */
  readonly known: readonly string[]
  /** Those of them that would do something here. */
  readonly useful: readonly string[]
  /** How the names of the chosen provider's settings begin: it has a sentence of its own for what else begins so. */
  readonly prefix?: string | undefined
}

/** Shorter names of other programs differ by a letter: PORT and POST, HOST and HOME. */
const DISTINCTIVE = 8

/** Of other programs: jobs get the first from crontabs, and many write their log to the second. */
const OTHERS = ['MAILFROM', 'LOG_FILE']

/** One sentence for each name that is no setting, with the one that was probably meant. */
export function misnamed({ inFile, inEnvironment, known, useful, prefix }: Named): readonly string[] {
  const sentences: string[] = []
  const isSettled = (name: string) => known.includes(name) || (prefix !== undefined && name.startsWith(prefix))
  for (const name of inFile.filter(each => !isSettled(each))) {
    const meant = nearest(name, known, ({ length }) => (length < DISTINCTIVE ? 1 : 2))
    sentences.push(
      `.env has ${name}, which is not a setting of Waitlist${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    )
  }
  const candidates = useful.filter(each => each.length >= DISTINCTIVE && !inEnvironment[each] && !inFile.includes(each))
  for (const [name, value] of Object.entries(inEnvironment)) {
    if (isSettled(name) || inFile.includes(name) || OTHERS.includes(name)) continue
    // Docker and Kubernetes tell each container where its neighbours are.
    if (!value || /^(?:tcp|udp|sctp):\/\//.test(value)) continue
    const meant = nearest(name, candidates, ({ length }) => (length < 2 * DISTINCTIVE ? 1 : 2))
    if (meant !== undefined) sentences.push(`${name} is not a setting of Waitlist; did you mean ${meant}?`)
  }
  return sentences
}

/** The candidate that is the same but for case and underscores, or the nearest one within so many typing errors. */
function nearest(
  name: string,
  candidates: readonly string[],
  maxDistance: (candidate: string) => number,
): string | undefined {
  const folded = (text: string) => text.replaceAll(/[_-]/g, '').toUpperCase()
  let best: string | undefined
  let smallest = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > 3) continue
    const distance = folded(candidate) === folded(name) ? 0 : editDistance(name, candidate)
    if (distance >= smallest || distance > maxDistance(candidate)) continue
    smallest = distance
    best = candidate
  }
  return best
}

/** Letters inserted, left out, replaced, or swapped with their neighbour (optimal string alignment distance). */
function editDistance(from: string, to: string): number {
  let before: number[] = []
  let last = Array.from({ length: to.length + 1 }, (_, j) => j)
  for (let i = 1; i <= from.length; i++) {
    const row = [i]
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1]
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1]
      row[j] = Math.min(
        last[j]! + 1,
        row[j - 1]! + 1,
        last[j - 1]! + (same ? 0 : 1),
        swapped ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY,
      )
    }
    before = last
    last = row
  }
  return last[to.length]!
}
