import type { Config } from '../config/config.ts'
import type { Removal } from '../waitlist/ports/provider.ts'
import { openOutside } from './compose.ts'

/** What people call the provider; null: none is set. */
export const providerTitle = ({ provider }: Pick<Config, 'provider'>): string | null => provider?.vendor.title ?? null

/** Removes a contact from the provider that is set. */
export async function removeAtProvider(config: Config, email: string, leave: AbortSignal): Promise<Removal> {
  const { provider } = await openOutside({ ...config, webhook: null, mail: null, channels: {} })
  if (provider === null) throw new Error('no provider is set')
  return provider.remove(email, leave).finally(provider.close)
}
