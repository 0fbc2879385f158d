// The keys a person types, and the same keys in the page's address, so that a link shows what its sender sees.
import { keyProblem } from './protocol-keys.js'

/** More cards than this cannot be looked at, and each costs the browser a parse per change. */
export const KEYS_MAX = 60

/**
 * Reads typed keys: separated by spaces, commas, semicolons or lines; quotes around them are dropped, doubles too.
 *
 * @param {string} typed
 * @returns {{ keys: string[], problem: string | undefined }} `problem` names the first text that is no key
 */
export function readKeys(typed) {
  const words = typed
    .split(/[\s,;]+/)
    .map(word => word.replace(/^["'`]+|["'`]+$/g, ''))
    .filter(word => word !== '')
  const bad = words.find(word => keyProblem(word))
  return {
    keys: [...new Set(words.filter(word => !keyProblem(word)))],
    problem: bad === undefined ? undefined : `“${shorten(bad)}”: ${keyProblem(bad)}`,
  }
}

/**
 * The keys named by the page's address. Other words there are left out silently: addresses get mangled.
 *
 * @param {string} hash with or without its `#`
 */
export function keysOfHash(hash) {
  let text = hash.replace(/^#/, '')
  try {
    text = decodeURIComponent(text)
  } catch {
    // A stray percent sign is no key's character: the words around it may still be keys.
  }
  return readKeys(text).keys.slice(0, KEYS_MAX)
}

/**
 * The fragment naming the keys. Their characters need no escaping there (RFC 3986 section 3.5).
 *
 * @param {Iterable<string>} keys
 */
export function hashOfKeys(keys) {
  const list = [...keys].join(',')
  return list === '' ? '' : `#${list}`
}

/** @param {string} word */
function shorten(word) {
  return word.length > 40 ? `${word.slice(0, 40)}…` : word
}
