// Namespaces of Keycast's own, which keycast.yaml cannot name: the journal has them, and gateways use them. No client can,
// because to a gateway's doors they are namespaces that there are none of.

/** Begins the names that keycast.yaml cannot use. */
export const RESERVED_PREFIX = 'keycast-'

/** Where gateways tell each other of revocations. */
export const revocationsRoom = 'keycast-revocations:all'

/**
 * As long as a token may live at most (`access.maxLifetime`): the journal does not read `access`. At some 150 bytes each a
 * million of them take 150 MB on disk.
 *
 * @type {import('./journal-schema.js').JournalNamespace}
 */
const revocations = {
  name: 'keycast-revocations',
  source: 'journal',
  history: { messages: 1_000_000, ageMs: 10 * 8_784 * 3_600_000, bytes: 512 * 1_024 ** 2 },
  bytesMax: 8 * 1_024,
  publish: 'server',
  members: 'none',
  names: 'any',
}

/**
 * @param {import('./namespaces.js').JournalNamespaces} namespaces of keycast.yaml
 * @returns {import('./namespaces.js').JournalNamespaces} with those of Keycast's own
 */
export function withReserved({ get, names }) {
  return {
    names,
    get: name => (name === revocations.name ? revocations : get(name)),
  }
}
