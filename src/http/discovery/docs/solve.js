// Solves a challenge of this service as its widget does, for what a reader tries. Without a solution the answer says so.
globalThis.solution = async () => {
  try {
    const { subtle } = crypto
    const challenge = await (await fetch('/api/challenge')).json()
    const { nonce, salt, cost: iterations, keyLength, keyPrefix } = challenge.parameters
    const how = { name: 'PBKDF2', hash: 'SHA-256', salt: Uint8Array.fromHex(salt), iterations }
    const guess = Uint8Array.fromHex(`${nonce}00000000`)
    for (let counter = 0; ; counter++) {
      new DataView(guess.buffer).setUint32(guess.length - 4, counter)
      const key = await subtle.importKey('raw', guess, 'PBKDF2', false, ['deriveBits'])
      const derivedKey = new Uint8Array(await subtle.deriveBits(how, key, 8 * keyLength)).toHex()
      if (derivedKey.startsWith(keyPrefix))
        return btoa(JSON.stringify({ challenge, solution: { counter, derivedKey } }))
    }
  } catch {}
}
