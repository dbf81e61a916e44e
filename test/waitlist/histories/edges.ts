import { troubles } from './line.ts'
import { fates } from './process.ts'

/** What thousands of histories must have come to; otherwise they prove less than they seem to. */
export const edges: readonly string[] = [
  ...['new', 'known', 'kept', 'refused', 'failed'].map(told => `told: ${told}`),
  ...['pending now', 'still pending', 'already listed'].map(admission => `admit: ${admission}`),
  ...['ours', 'taken', 'listed', 'gone'].map(beginning => `begin: ${beginning}`),
  ...['created', 'refused', 'existing, ours, in doubt'],
  ...['existing, not ours, in doubt', 'existing, not ours, without doubt'],
  ...['conclude: the lease was lost', 'settle: the lease was lost'],
  ...['delivered', 'waiting', 'abandoned'].map(settlement => `settle: ${settlement}`),
  ...['receiver: gone', 'receiver: dropped a repetition', 'the owner replayed'],
  ...['vendor', 'receiver'].flatMap(line => troubles.map(trouble => `${line}: ${trouble}`)),
  ...troubles.filter(trouble => trouble !== 'unclear, effect later').map(trouble => `automation: ${trouble}`),
  ...Object.entries(fates).flatMap(([what, moments]) => moments.map(at => `${what} ${at}`)),
  ...['a process woke up', 'the file was opened again'],
]
