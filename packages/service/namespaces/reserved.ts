// Namespaces of Keycast's own, which keycast.yaml cannot name. The journal has them, and gateways use them. No client
// can: a gateway's doors do not know these namespaces.
import type { JournalNamespace } from './journal-schema.ts'
import type { JournalNamespaces } from './namespaces.ts'

/** The prefix of the names that keycast.yaml cannot use. */
export const RESERVED_PREFIX = 'keycast-'

/** The room in which gateways tell each other of revocations. */
export const revocationsRoom = 'keycast-revocations:all'

/**
 * The room for calls that concern the gateways there are, and none that starts later. Among the revocations they would take
 * the place of those in the end, and be read by each gateway that starts.
 */
export const callsRoom = 'keycast-calls:all'

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

/** A gateway that is a minute behind has lost its journal, and is told of a gap. */
const calls: JournalNamespace = {
  ...revocations,
  name: 'keycast-calls',
  history: { messages: 10_000, ageMs: 60_000, bytes: 2 * 1_024 ** 2 },
}

const reserved = new Map([revocations, calls].map(each => [each.name, each]))

/**
 * @param namespaces of keycast.yaml
 * @returns these, and Keycast's own
 */
export function withReserved(namespaces: JournalNamespaces): JournalNamespaces {
  return {
    get names() {
      return namespaces.names
    },
    get: name => reserved.get(name) ?? namespaces.get(name),
  }
}
