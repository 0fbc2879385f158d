// Reads fields out of a message without parsing it: a generator reads a million messages a second.

/**
 * The number after a name, from the beginning of a message; NaN where it is not there.
 *
 * @param name as in `"seq":`
 */
export function numberAfter(head: string, name: string) {
  const found = head.indexOf(name)
  if (found === -1) return Number.NaN
  let at = found + name.length
  let value = 0
  for (let code = head.charCodeAt(at); code >= 48 && code <= 57; code = head.charCodeAt(++at)) {
    value = value * 10 + code - 48
  }
  return value
}

/** The code of an error, or of a key that is stale. */
export const codeIn = (head: string) => /"code":"([^"]*)"/.exec(head)?.[1]
