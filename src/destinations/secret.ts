/** Whether a text is a Standard Webhooks secret: `whsec_` and 24 to 64 bytes in base64. */
export function isSecret(text: string): boolean {
  const [, encoded] = /^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)$/.exec(text) ?? []
  if (encoded === undefined) return false
  const bytes = (encoded.length / 4) * 3 - (encoded.length - encoded.replace(/=+$/, '').length)
  return bytes >= 24 && bytes <= 64
}
