// Tells backends which keys somebody views (`notify: { viewers: true }` of a namespace). A key that goes to another node
// is that node's to tell of: only here it must not be said to have no viewers.
import { namespaceOf } from '@keycast/protocol'
import type { Log, Namespaces, World } from '@keycast/service'
import { createStatesTeller, type Outcome, type Post } from '@keycast/service/notify'
import type { Entry } from '../keys/entry.ts'
import { isKept } from '../keys/interest.ts'
import type { KeyTable } from '../keys/key-table.ts'

export type Viewers = ReturnType<typeof createViewers>

/** Viewers come together, and go to the next key. */
const LINGER_MS = 250

/** An end that could not be told by then is not told: the key may be another node's, and have viewers there. */
const END_MS_MAX = 10_000

interface Deps extends Pick<World, 'now' | 'random' | 'every' | 'after' | 'turn'> {
  namespaces: Namespaces
  table: Pick<KeyTable, 'get' | 'entries'>
  post: Post
  metrics: { notified: (outcome: Outcome['kind']) => void }
  log: Pick<Log, 'warn'>
}

export function createViewers({ namespaces, table, post, metrics, log, ...world }: Deps) {
  const { now } = world
  /** Keys that some gateway may watch at another node: it moved them there, or its link was lost. */
  const unsure = new WeakSet<Entry>()
  const teller = createStatesTeller({
    ...world,
    what: 'viewers',
    lingerMs: LINGER_MS,
    standing,
    rulesOf: key => namespaces.get(namespaceOf(key))?.notify,
    post,
    counts: { called: metrics.notified },
    report: log,
  })

  function* standing() {
    if (!namespaces.names.some(name => namespaces.get(name)?.notify)) return
    for (const entry of table.entries()) yield isKept(entry) && isTold(entry) ? watched(entry.key) : undefined
  }

  const isTold = ({ namespace }: Entry) => namespace.notify !== undefined

  function isWatchedNow(key: string) {
    const entry = table.get(key)
    return entry !== undefined && isKept(entry)
  }

  const watched = (key: string): Parameters<typeof teller.changed> => [
    key,
    () => (isWatchedNow(key) ? { watched: true } : undefined),
  ]

  return {
    /** @param entry that was not kept fresh, and is from now on */
    came(entry: Entry) {
      if (isTold(entry)) teller.changed(...watched(entry.key))
    },

    /** A link does not watch the key any more, and its gateway may. */
    lost(entry: Entry) {
      if (isTold(entry)) unsure.add(entry)
    },

    /** The last watcher left, and no other one came for a moment. */
    left(entry: Entry) {
      if (unsure.delete(entry) || !isTold(entry)) return
      const { key } = entry
      const until = now() + END_MS_MAX
      teller.changed(key, () => (isWatchedNow(key) || now() > until ? undefined : { watched: false }))
    },

    start: teller.start,
    stop: teller.stop,
  }
}
