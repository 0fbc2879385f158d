// The check of Keycast's calls to a backend (`notify` in keycast.yaml).
import { createHmac, timingSafeEqual } from 'node:crypto'

/** A call is made anew, and signed anew, each time: an older one was recorded by somebody, or clocks differ by more. */
const SIGNED_SECONDS_MAX = 300

/**
 * Whether a call to this backend is Keycast's, and of now.
 *
 * @param {string | string[] | null | undefined} signature the header `Keycast-Signature`
 * @param {string | Uint8Array} body as it came, before anything parsed it
 * @param {string | string[]} secrets any of them may have signed
 * @param {{ maxAgeSeconds?: number, now?: () => number }} [options] `now`: milliseconds since 1970
 */
export function isFromKeycast(
  signature,
  body,
  secrets,
  { maxAgeSeconds = SIGNED_SECONDS_MAX, now = () => Date.now() } = {},
) {
  const [first, ...signed] = String(signature ?? '').split(',')
  const [, seconds] = /^t=(\d{1,12})$/.exec(first) ?? []
  if (seconds === undefined || Math.abs(now() / 1_000 - Number(seconds)) > maxAgeSeconds) return false
  return [secrets].flat().some(secret => {
    const expected = createHmac('sha256', secret).update(`${seconds}.`).update(body).digest()
    return signed.some(each => {
      const given = /^v1=([0-9a-f]{64})$/.exec(each)
      return given !== null && timingSafeEqual(Buffer.from(given[1], 'hex'), expected)
    })
  })
}
