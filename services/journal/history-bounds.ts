// The bounds of `history` in force. A longer one holds at once, a shorter one only after it has stood for a while: one
// journal that starts with an old keycast.yaml would else trim every room for good, also for journals that share its log.
import { namespaceOf } from '@keycast/protocol'
import type { JournalNamespace, JournalNamespaces, Log } from '@keycast/service'
import type { Notes, Retention } from './log/log.ts'

/**
 * What the log notes of a namespace. `since`: a journal wants less since then, by the log's clock, and no other has
 * disagreed.
 */
type Noted = Retention & { since?: number }

const fields = ['messages', 'ageMs', 'bytes'] as const

interface Deps {
  namespaces: JournalNamespaces
  /** Of the log; absent: what keycast.yaml says holds. */
  notes: Notes | undefined
  /** A shorter history must have stood for so long. */
  shortenMs: number
  report: Pick<Log, 'warn' | 'info'>
}

export function createHistoryBounds({ namespaces, notes, shortenMs, report }: Deps) {
  let inForce = new Map<string, Noted>()
  /** Namespaces whose history is to become shorter, as the log last said. */
  let shortening = new Set<string>()

  /** @returns `undefined` if keycast.yaml has no such namespace */
  function retentionNow(room: string): Retention | undefined {
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
      // keycast.yaml may change while the log is written to.
      const { names } = namespaces
      const before: Record<string, Noted> = noted.text === '' ? {} : JSON.parse(noted.text)
      const after = { ...before }
      for (const name of names)
        after[name] = settled(
          Object.hasOwn(before, name) ? before[name] : undefined,
          wantedOf(name),
          noted.at,
          shortenMs,
        )
      const said = JSON.stringify(after)
      if (said !== noted.text && !(await notes.replace(noted.text, said))) continue // another journal was faster
      return takeOver(
        after,
        names.filter(name => namespaces.get(name)),
      )
    }
  }

  function wantedOf(name: string) {
    const { messages, ageMs, bytes } = (namespaces.get(name) as JournalNamespace).history
    return { messages, ageMs, bytes }
  }

  function takeOver(noted: Record<string, Noted>, names: string[]) {
    const before = shortening
    if (names.some(name => !isSame(noted[name], inForce.get(name)))) {
      retentionOf = room => retentionNow(room)
    }
    inForce = new Map(names.map(name => [name, noted[name]]))
    shortening = new Set(names.filter(name => isShorter(wantedOf(name), noted[name])))
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
    /** keycast.yaml changed. A log that notes nothing has what it says hold at once. */
    renew() {
      if (!notes) retentionOf = room => retentionNow(room)
    },
    /** A function that is another one after the bounds changed: a log looks at all its rooms for each. */
    get retentionOf() {
      return retentionOf
    },
    stats: () => ({ shortening: shortening.size }),
  }
}

/** What holds once a journal has said what it wants. */
function settled(noted: Noted | undefined, wanted: Retention, at: number, shortenMs: number): Noted {
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

const isShorter = (one: Retention, other: Retention) => fields.some(field => one[field] < other[field])

const isSame = (one: Retention, other: Retention | undefined) => fields.every(field => one[field] === other?.[field])
