// One place for each encoding, where a value or an entry keeps what that encoding made of it.

/**
 * @template T
 * @typedef {(T | undefined)[]} Slots
 */

/**
 * Room for the encodings there are now. It grows if there are more; an array that starts empty would grow to 17 places
 * with the first one used.
 *
 * @returns {Slots<any>}
 */
export function emptySlots() {
  return [undefined, undefined, undefined, undefined]
}
