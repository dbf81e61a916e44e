/** An http or https address without user and fragment; undefined if the text is not one. */
export function httpUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const { protocol, hash, username, password } = url
  return /^https?:$/.test(protocol) && !hash && !username && !password ? url : undefined
}
