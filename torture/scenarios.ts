import { readdirSync } from 'node:fs'
import type { Scenario } from './scenario.ts'

const folder = new URL('scenarios/', import.meta.url)

/** Every file of the folder, by its name. */
export const names: readonly string[] = readdirSync(folder)
  .map(file => file.replace(/\.ts$/, ''))
  .sort()

export async function scenarioNamed(name: string): Promise<Scenario> {
  return (await import(new URL(`${name}.ts`, folder).href)).scenario
}
