// One place for each encoding, where a value or an entry keeps what that encoding made of it.

export type Slots<T> = (T | undefined)[]

/**
 * Room for the encodings there are now. It grows if there are more; an array that starts empty would grow to 17 places
 * with the first one used.
 */
export function emptySlots(): Slots<any> {
  return [undefined, undefined, undefined, undefined]
}
