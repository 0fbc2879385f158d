// The bounds of `history` in force. A longer one holds at once, a shorter one only after it has stood for a while: one
// journal that starts with an old keycast.yaml would else trim every room for good, also for journals that share its log.
import { namespaceOf } from '@keycast/protocol'

/**
 * @typedef {import('./log/log.ts').Retention} Retention
 *
 * What the log notes of a namespace. `since`: a journal wants less since then, by the log's clock, and no other has
 * disagreed.
 * @typedef {Retention & { since?: number }} Noted
 */

const fields = /** @type {const} */ (['messages', 'ageMs', 'bytes'])

/**
 * @param {object} deps
 * @param {import('@keycast/service').JournalNamespaces} deps.namespaces
 * @param {import('./log/log.ts').Notes | undefined} deps.notes of the log; absent: what keycast.yaml says holds
 * @param {number} deps.shortenMs a shorter history must have stood for so long
 * @param {Pick<import('@keycast/service').Log, 'warn' | 'info'>} deps.report
 */
export function createHistoryBounds({ namespaces, notes, shortenMs, report }) {
  /** @type {Map<string, Noted>} */
  let inForce = new Map()
  /** Namespaces whose history is to become shorter, as the log last said. */
  let shortening = new Set()

  /** @param {string} room @returns {Retention | undefined} `undefined` if keycast.yaml has no such namespace */
  function retentionNow(room) {
    const name = namespaceOf(room)
    return inForce.get(name) ?? namespaces.get(name)?.history
  }
  let retentionOf = retentionNow

  /**
   * Says what keycast.yaml wants, and takes over what holds now. It writes, so nothing else may write meanwhile.
   *
   * @throws {Error} where the log cannot be read
   */
  async function settle() {
    if (!notes) return
    for (;;) {
      const noted = await notes.read()
      /** @type {Record<string, Noted>} */
      const before = noted.text === '' ? {} : JSON.parse(noted.text)
      const after = { ...before }
      for (const name of namespaces.names) after[name] = settled(before[name], wantedOf(name), noted.at, shortenMs)
      const said = JSON.stringify(after)
      if (said !== noted.text && !(await notes.replace(noted.text, said))) continue // another journal was faster
      return takeOver(after)
    }
  }

  /** @param {string} name */
  function wantedOf(name) {
    const { messages, ageMs, bytes } = /** @type {import('@keycast/service').JournalNamespace} */ (namespaces.get(name))
      .history
    return { messages, ageMs, bytes }
  }

  /** @param {Record<string, Noted>} noted */
  function takeOver(noted) {
    const before = shortening
    if (namespaces.names.some(name => !isSame(noted[name], inForce.get(name)))) {
      retentionOf = room => retentionNow(room)
    }
    inForce = new Map(namespaces.names.map(name => [name, noted[name]]))
    shortening = new Set(namespaces.names.filter(name => isShorter(wantedOf(name), noted[name])))
    for (const namespace of shortening) {
      if (before.has(namespace)) continue
      const { since = 0, ...history } = noted[namespace]
      report.warn(
        { namespace, inForce: history, wanted: wantedOf(namespace), from: new Date(since + shortenMs).toISOString() },
        'keycast.yaml keeps less than this log was used with: it holds from then on, if no other journal keeps more',
      )
    }
    for (const namespace of before) {
      if (!shortening.has(namespace))
        report.info({ namespace, history: noted[namespace] }, 'the shorter history is in force')
    }
  }

  return {
    settle,
    /** A function that is another one after the bounds changed: a log looks at all its rooms for each. */
    get retentionOf() {
      return retentionOf
    },
    stats: () => ({ shortening: shortening.size }),
  }
}

/**
 * What holds once a journal has said what it wants.
 *
 * @param {Noted | undefined} noted @param {Retention} wanted @param {number} at @param {number} shortenMs
 * @returns {Noted}
 */
function settled(noted, wanted, at, shortenMs) {
  if (!noted) return wanted
  const longest = {
    messages: Math.max(noted.messages, wanted.messages),
    ageMs: Math.max(noted.ageMs, wanted.ageMs),
    bytes: Math.max(noted.bytes, wanted.bytes),
  }
  if (!isShorter(wanted, longest)) return longest
  const since = noted.since ?? at
  return at - since >= shortenMs ? wanted : { ...longest, since }
}

/** @param {Retention} one @param {Retention} other */
const isShorter = (one, other) => fields.some(field => one[field] < other[field])

/** @param {Retention} one @param {Retention | undefined} other */
const isSame = (one, other) => fields.every(field => one[field] === other?.[field])
