// What each link is sent of the values that it watches or asks for: the latest at the time of sending, whatever came before.
// Unlike a room's messages they need not all arrive, so a slow link costs a mark for each key, and no reads.
import { decodeKept, type PushedAnswers, type RoomAnswer, type RoomErrorCode, readPushedKey } from '@keycast/backbone'
import type { Position } from '@keycast/protocol'
import type { PushedNamespaces } from '@keycast/service'
import { createReadSlots, type ReadSlots } from '../deliveries/read-slots.ts'
import type { Kept, Log, Publish } from '../log/log.ts'
import { failed } from '../problems.ts'
import { isPushed } from './put.ts'

/** The latest of a key, as it was kept. */
interface State extends Position {
  order: number
  rank: number | undefined
  data: Buffer
}

/**
 * A key that some link watches. `head`: its place as far as that is known. `latest`: there, if some link has not been sent it
 * yet; `left`: how many have not.
 */
interface Watched {
  links: Map<string, Wanted>
  head: Position | undefined
  latest: State | undefined
  left: number
}

/**
 * A link's watch of a key, or its get. `held`: what the gateway has. `isAnswered`: it was told something since it asked.
 * `read`: came from the log, and waits for credit. `problem`: is told in place of the value.
 */
interface Wanted {
  key: string
  held: Position | undefined
  isAnswered: boolean
  read: State | undefined
  problem: RoomErrorCode | undefined
  takesSlot: boolean
  isReading: boolean
}

interface Link {
  watches: Map<string, Wanted>
  gets: Map<string, Wanted>
  /** Reads that failed, which the next beat repeats. */
  failed: Set<Wanted>
  slots: ReadSlots
}

/** Bytes of latest values in memory. Others are read from the log once a link has credit for them. */
const LATEST_BYTES_MAX = 32 * 2 ** 20

const NOTHING = Object.freeze({ answers: [], more: false })

interface Deps {
  namespaces: Pick<PushedNamespaces, 'get'>
  log: Pick<Log, 'read' | 'watch' | 'unwatch'>
  tell: (link: string, key: string) => void
  counts: { read: (from: 'tail' | 'log', messages: number) => void }
  onReadFailed: (error: Error) => void
}

export function createPushedValues({ namespaces, log, tell, counts, onReadFailed }: Deps) {
  const keys = new Map<string, Watched>()
  const links = new Map<string, Link>()
  let latestBytes = 0
  /** The log is out of reach: nobody knows what other journals keep. */
  let isBlind = false

  function linkOf(id: string): Link {
    const link = links.get(id) ?? {
      watches: new Map(),
      gets: new Map(),
      failed: new Set(),
      slots: createReadSlots(key => tell(id, key)),
    }
    links.set(id, link)
    return link
  }

  const wantedOf = ({ key, position }: { key: string; position?: Position }): Wanted => ({
    key,
    held: position,
    isAnswered: false,
    read: undefined,
    problem: isPushed(namespaces, readPushedKey(key)) ? undefined : 'unknown_namespace',
    takesSlot: false,
    isReading: false,
  })

  function onWatch(id: string, want: { key: string; position?: Position }) {
    const link = linkOf(id)
    onUnwatch(id, want.key)
    const wanted = wantedOf(want)
    link.watches.set(want.key, wanted)
    if (!wanted.problem) {
      const watched = keys.get(want.key) ?? { links: new Map(), head: undefined, latest: undefined, left: 0 }
      if (watched.links.size === 0) log.watch(want.key)
      keys.set(want.key, watched)
      watched.links.set(id, wanted)
      if (watched.latest && !isAt(wanted.held, watched.latest)) watched.left++
    }
    tell(id, want.key)
  }

  function onUnwatch(id: string, key: string) {
    const link = links.get(id)
    const wanted = link?.watches.get(key)
    if (!link || !wanted) return
    link.watches.delete(key)
    forget(link, wanted)
    const watched = keys.get(key)
    if (!watched?.links.delete(id)) return
    if (watched.latest && !isAt(wanted.held, watched.latest)) sent(watched)
    if (watched.links.size > 0) return
    drop(watched)
    keys.delete(key)
    log.unwatch(key)
  }

  function onGet(id: string, want: { key: string; position?: Position }) {
    const { gets } = linkOf(id)
    onCancelGet(id, want.key)
    gets.set(want.key, wantedOf(want))
    tell(id, want.key)
  }

  function onCancelGet(id: string, key: string) {
    const link = links.get(id)
    const wanted = link?.gets.get(key)
    if (!link || !wanted) return
    link.gets.delete(key)
    forget(link, wanted)
  }

  function forget(link: Link, wanted: Wanted) {
    link.failed.delete(wanted)
    link.slots.release(wanted)
  }

  function onLinkLost(id: string) {
    for (const key of [...(links.get(id)?.watches.keys() ?? [])]) onUnwatch(id, key)
    links.delete(id)
  }

  /** All links have it, or another one comes. */
  function drop(watched: Watched) {
    latestBytes -= watched.latest?.data.length ?? 0
    watched.latest = undefined
    watched.left = 0
  }

  function sent(watched: Watched) {
    if (--watched.left <= 0) drop(watched)
  }

  /** The key's value came into the log. */
  function keep({ room: key, data, value }: Publish, { position, value: given }: Kept) {
    const watched = keys.get(key)
    if (!watched) return
    drop(watched)
    watched.head = position
    if (latestBytes + data.length <= LATEST_BYTES_MAX) {
      const { order, rankBefore } = given as NonNullable<Kept['value']>
      watched.latest = { ...position, order, rank: value?.rank ?? rankBefore, data }
      watched.left = watched.links.size
      latestBytes += data.length
    }
    for (const id of watched.links.keys()) tell(id, key)
  }

  /** Another journal of the log may have kept another one. */
  function raise(key: string, { epoch, seq }: Position) {
    const watched = keys.get(key)
    if (!watched?.head || (watched.head.epoch === epoch && watched.head.seq >= seq)) return
    drop(watched)
    watched.head = { epoch, seq }
    for (const id of watched.links.keys()) tell(id, key)
  }

  /** What is known of the log may be wrong: all is read anew. */
  function onUncertain() {
    for (const watched of keys.values()) {
      drop(watched)
      watched.head = undefined
    }
    tellAll()
  }

  function tellAll() {
    for (const [id, { watches }] of links) {
      for (const wanted of watches.values()) {
        wanted.isAnswered = false
        tell(id, wanted.key)
      }
    }
  }

  function answersFor(id: string, key: string): { answers: RoomAnswer[]; more: boolean } {
    const link = links.get(id)
    if (!link) return NOTHING
    const answers = []
    for (const [wants, isGet] of [
      [link.gets, true],
      [link.watches, false],
    ] as const) {
      const wanted = wants.get(key)
      const answer = wanted && answerTo(id, link, wanted, isGet)
      if (!answer) continue
      answers.push(answer)
      if (isGet) onCancelGet(id, key)
    }
    return answers.length === 0 ? NOTHING : { answers, more: false }
  }

  function answerTo(id: string, link: Link, wanted: Wanted, isGet: boolean): RoomAnswer | undefined {
    const { key } = wanted
    if (wanted.problem || isBlind) return problemOf(wanted)
    const watched = isGet ? undefined : keys.get(key)
    const state = stateFor(link, wanted, watched)
    if (!state) {
      if (watched?.head && isAt(wanted.held, watched.head))
        return isToTell(wanted) ? unchanged(key, watched.head) : undefined
      readFor(id, link, wanted)
      return undefined
    }
    if (isAt(wanted.held, state)) return isToTell(wanted) ? unchanged(key, state) : undefined
    wanted.held = { epoch: state.epoch, seq: state.seq }
    wanted.isAnswered = true
    if (watched?.latest === state) sent(watched)
    return answerOf(key, state)
  }

  /** @returns whether it is to be told that nothing changed: once */
  function isToTell(wanted: Wanted) {
    if (wanted.isAnswered) return false
    wanted.isAnswered = true
    return true
  }

  function problemOf(wanted: Wanted): RoomAnswer | undefined {
    const { key, problem } = wanted
    if (problem !== 'journal_unavailable') {
      if (!isToTell(wanted)) return undefined
      return failed(key, problem ?? 'journal_unavailable')
    }
    // The read is tried again, and then it is told whatever it brings.
    wanted.problem = undefined
    wanted.isAnswered = false
    return failed(key, problem)
  }

  /** The latest, as far as it is in memory. */
  function stateFor({ slots }: Link, wanted: Wanted, watched: Watched | undefined): State | undefined {
    const { read } = wanted
    wanted.read = undefined
    // Else its read is under way, or is to be.
    if (read || watched?.latest) slots.release(wanted)
    if (watched?.latest) {
      counts.read('tail', 1)
      return watched.latest
    }
    if (!read || !watched?.head) return read
    return read.epoch === watched.head.epoch && read.seq < watched.head.seq ? undefined : read
  }

  async function readFor(id: string, link: Link, wanted: Wanted) {
    if (!link.slots.take(wanted)) return
    const { key } = wanted
    const isWanted = () => links.get(id) === link && (link.watches.get(key) === wanted || link.gets.get(key) === wanted)
    try {
      const { head, messages } = await log.read(key, { before: Number.MAX_SAFE_INTEGER, limit: 1, bytesMax: 1 })
      counts.read('log', messages.length)
      if (!isWanted()) return
      const { epoch, seq, value } = head
      wanted.read = { epoch, seq, order: value?.order ?? 0, rank: value?.rank, data: messages.at(-1)?.data ?? NONE }
      const watched = keys.get(key)
      if (watched && !(watched.head?.epoch === epoch && watched.head.seq >= seq)) watched.head = { epoch, seq }
    } catch (error) {
      onReadFailed(error as Error)
      link.slots.release(wanted)
      if (!isWanted()) return
      wanted.problem = 'journal_unavailable'
      wanted.isAnswered = false
      if (link.watches.get(key) === wanted) link.failed.add(wanted)
    } finally {
      link.slots.ended(wanted)
    }
    tell(id, key)
  }

  return {
    onWatch,
    onUnwatch,
    onGet,
    onCancelGet,
    onLinkLost,
    answersFor,
    keep,
    raise,
    onUncertain,

    /** With each beat of a link: reads that failed are tried again. */
    retry(id: string) {
      const again = links.get(id)?.failed
      if (!again || again.size === 0) return
      for (const { key } of again) tell(id, key)
      again.clear()
    },

    /** Whether the log that many journals share can be reached. */
    setReached(isReached: boolean) {
      if (isBlind === !isReached) return
      isBlind = !isReached
      tellAll()
    },

    keys: () => [...keys.keys()],
    stats: () => ({ watched: keys.size }),
  }
}

const NONE = Buffer.from('null')

const isAt = (held: Position | undefined, { epoch, seq }: Position) => held?.epoch === epoch && held.seq === seq

const unchanged = (key: string, { epoch, seq }: Position): PushedAnswers => ({ type: 'unchanged', key, epoch, seq })

const answerOf = (key: string, { epoch, seq, order, rank, data }: State): PushedAnswers => ({
  type: 'pushed',
  key,
  epoch,
  seq,
  order,
  rank,
  content: decodeKept(data),
})
