import type { Config } from '../config/config.ts'
import type { Removal } from '../waitlist/ports/provider.ts'
import { openDestinations } from './adapters.ts'

/** Removes a contact from the provider that is set. */
export async function removeAtProvider(config: Config, email: string, signal: AbortSignal): Promise<Removal> {
  const { provider, close } = await openDestinations({ ...config, webhook: null, mail: null, channels: {} })
  if (provider === null) throw new Error('no provider is set')
  return provider.remove(email, signal).finally(close)
}
