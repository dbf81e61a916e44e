import { execFileSync } from 'node:child_process'

/** The tool of Prometheus that checks metrics and rules; undefined: it is not installed. */
export const promtool = isInstalled() ? 'promtool' : undefined
export const noPromtool = 'promtool is not installed; .ci/run installs it with prometheus'

function isInstalled(): boolean {
  try {
    execFileSync('promtool', ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
