// Origins whose pages may connect (RFC 6454): checks the setting, and compares it with the header that browsers send.
import { excerpt } from '@keycast/protocol'

/** Stands for all of them. */
export const ANY_ORIGIN = '*'

/**
 * Finds what is wrong with a list of origins, if anything. An origin that no browser sends as it is written would match
 * nothing, and no error would say so.
 *
 * @param text comma-separated
 */
export function originsProblem(text: string) {
  if (text === ANY_ORIGIN) return undefined
  for (const origin of listOf(text)) {
    if (origin === ANY_ORIGIN) return '* means any origin, and stands alone'
    const sent = sentFor(origin)
    if (sent === undefined) return `${excerpt(origin)} is no origin, as in https://example.org`
    if (sent !== origin) return `no browser sends ${excerpt(origin)}: write ${sent}`
  }
  return undefined
}

/**
 * @param text without a problem
 * @returns whether pages of that origin may connect
 */
export function readOrigins(text: string): (origin: string) => boolean {
  if (text === ANY_ORIGIN) return () => true
  const allowed = new Set(listOf(text))
  return origin => allowed.has(origin)
}

function listOf(text: string) {
  return text.split(',').map(origin => origin.trim())
}

/** The origin of a URL. Not its `origin`, which is null for those that apps have (`capacitor://localhost`). */
function sentFor(url: string) {
  if (!URL.canParse(url)) return undefined
  const { protocol, host } = new URL(url)
  return host === '' ? undefined : `${protocol}//${host}`
}
