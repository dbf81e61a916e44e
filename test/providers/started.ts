import type { TestContext } from 'node:test'
import type { VendorName } from '../../src/providers/list.ts'
import { opened, type VendorFake } from '../contracts/provider.ts'
import { type Asked, type Said, startVendor } from '../harness/vendor.ts'

/**
 * Makes what starts a vendor's fake, and the provider in front of it: `change` replaces settings, `said` answers in the
 * fake's place where it wants to.
 */
export function starting<Fake extends VendorFake>(
  vendor: VendorName,
  makeFake: () => Fake,
  settings: (url: string) => Record<string, string>,
) {
  return async (t: TestContext, change: Record<string, string> = {}, said?: (asked: Asked) => Said | undefined) => {
    const fake = makeFake()
    const server = await startVendor(t, asked => said?.(asked) ?? fake.answer(asked))
    const provider = await opened(t, { vendor }, { ...settings(server.url), ...change })
    return { fake, server, provider }
  }
}

export const callsOf = ({ asked }: { readonly asked: readonly Asked[] }): string[] =>
  asked.map(({ method, path }) => `${method} ${path}`)
