// Namespaces of Keycast's own, which keycast.yaml cannot name. The journal has them, and gateways use them. No client
// can: a gateway's doors do not know these namespaces.
import type { JournalNamespace } from './journal-schema.ts'
import type { JournalNamespaces } from './namespaces.ts'

/** The prefix of the names that keycast.yaml cannot use. */
export const RESERVED_PREFIX = 'keycast-'

/** The room in which gateways tell each other of revocations. */
export const revocationsRoom = 'keycast-revocations:all'

/** As long as a token may live at most (`access.maxLifetime`): the journal does not read `access`. */
const LIFETIME_MS_MAX = 10 * 8_784 * 3_600_000

/** A revocation may mean tokens that are issued within a day after it, and issuers' clocks may be ahead. */
const AHEAD_MS_MAX = 25 * 3_600_000

/** At some 150 bytes each a million of them take 150 MB on disk. */
const revocations: JournalNamespace = {
  name: 'keycast-revocations',
  source: 'journal',
  history: { messages: 1_000_000, ageMs: LIFETIME_MS_MAX + AHEAD_MS_MAX, bytes: 512 * 1_024 ** 2 },
  bytesMax: 8 * 1_024,
  publish: 'server',
  members: 'none',
  names: 'any',
}

/**
 * @param namespaces of keycast.yaml
 * @returns these, and Keycast's own
 */
export function withReserved(namespaces: JournalNamespaces): JournalNamespaces {
  return {
    get names() {
      return namespaces.names
    },
    get: name => (name === revocations.name ? revocations : namespaces.get(name)),
  }
}
