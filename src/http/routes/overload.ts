/**
 * Milliseconds that one turn of the event loop may go on admitting. Signups that come later in it have waited about as long
 * already, in the kernel, and the next turn waits behind this one.
 */
const TURN = 250
/** Signups that one turn admits however long it takes: a process that was suspended for a moment is not overloaded. */
const AT_LEAST = 256

/**
 * Decides at the door which signups are refused, before anything is spent on them: while the store is behind, and at the
 * end of a long turn of the event loop, which is a queue as well.
 *
 * The function that it returns is called for each signup. Null: it may go on. Otherwise it is to be refused when the promise
 * resolves, at the end of the turn: a refusal at once would bring the next attempt into the same turn, and those who were
 * admitted are answered at its end.
 *
 * `clock` is monotonic, in milliseconds.
 */
export function overload(
  isBehind: () => boolean,
  clock: () => number = () => performance.now(),
): () => Promise<void> | null {
  let turn: Promise<void> | null = null
  let began = 0
  let admitted = 0
  const beginTurn = () => {
    began = clock()
    admitted = 0
    turn = new Promise(resolve =>
      setImmediate(() => {
        turn = null
        resolve()
      }),
    )
    return turn
  }
  return () => {
    const end = turn ?? beginTurn()
    const isTurnLong = admitted >= AT_LEAST && clock() - began > TURN
    if (isTurnLong || isBehind()) return end
    admitted++
    return null
  }
}
