import { troubles } from './line.ts'
import { fates } from './process.ts'
import { vendorNames } from './vendor.ts'

/** What thousands of histories must have come to; otherwise they prove less than they seem to. */
export const edges: readonly string[] = [
  ...['new', 'known', 'kept', 'lost', 'refused', 'failed'].map(told => `told: ${told}`),
  ...['pending now', 'still pending', 'already listed'].map(admission => `admit: ${admission}`),
  ...['ours', 'somebody else has it'].map(claimed => `claim one: ${claimed}`),
  'created',
  'refused',
  'existing, ours, in doubt',
  'existing, not ours, in doubt',
  'existing, not ours, without doubt',
  ...['the lease was lost', 'listed', 'removed'].map(settlement => `settle: ${settlement}`),
  ...['delivered', 'waiting', 'abandoned'].map(settlement => `settle: ${settlement}`),
  'receiver: gone',
  'receiver: dropped a repetition',
  'the owner replayed',
  ...['vendor', 'receiver'].flatMap(line => troubles.map(trouble => `${line}: ${trouble}`)),
  ...troubles.filter(trouble => trouble !== 'unclear, effect later').map(trouble => `automation: ${trouble}`),
  ...Object.entries(fates).flatMap(([what, moments]) => moments.map(at => `${what} ${at}`)),
  'a process woke up',
  'the file was opened again',
  ...vendorNames.map(name => `the provider is the ${name}`),
]
