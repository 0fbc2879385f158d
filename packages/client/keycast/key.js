// Makes keys from parts, so that no part is taken for more than it is.

// As the gateway has it: docs/protocol.md#keys.
const characters = /^[A-Za-z0-9._~@:+,=!$'() \p{L}\p{M}\p{N}-]+$/u

/**
 * A key: `key('task', ['acme', 42], { status: 'open' })` is `task:acme/42?status=open`. Letters are put into Unicode's
 * form NFC.
 *
 * @param {string} namespace
 * @param {string | number | readonly (string | number)[]} [segments] of the id; none where the namespace has no ids
 * @param {Readonly<Record<string, string | number | boolean | null | undefined>>} [query] in the order in which the
 *   namespace names its parameters; what is undefined, null or empty is left out
 * @throws {TypeError} for a part that cannot stand in a key
 */
export function key(namespace, segments = [], query = {}) {
  const id = [segments].flat().map(segment => partOf(segment, 'segment'))
  const dots = id.find(segment => segment === '.' || segment === '..')
  if (dots !== undefined) throw new TypeError(`no segment of a key is "${dots}"`)
  const parameters = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(
      ([name, value]) =>
        `${name}=${String(value)
          .split('/')
          .map(part => part && partOf(part, name))
          .join('/')}`,
    )
  return `${namespace}:${id.join('/')}${parameters.length > 0 ? `?${parameters.join('&')}` : ''}`
}

/** @param {unknown} part @param {string} where */
function partOf(part, where) {
  const text = String(part).normalize()
  if (characters.test(text)) return text
  throw new TypeError(
    `${where} ${JSON.stringify(text)}: a key has letters, digits, spaces and . _ ~ - @ : + , = ! $ ' ( )`,
  )
}

/**
 * A user's name as `{sub}` in an access pattern stands for it: characters that no segment has are written `~HH`.
 *
 * @param {string} user the token's `sub`
 */
export function userSegment(user) {
  const outside =
    user === user.normalize() ? /[^A-Za-z0-9._@:+,=!$'() \p{L}\p{M}\p{N}-]/gu : /[^A-Za-z0-9._@:+,=!$'() -]/gu
  return user.replace(outside, character =>
    Array.from(
      new TextEncoder().encode(character),
      byte => `~${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    ).join(''),
  )
}
