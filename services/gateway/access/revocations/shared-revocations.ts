// Revocations that every gateway follows: messages of a room that the journal keeps and no client can name. A gateway reads
// the room's history when it starts, so it knows those of before. Calls that concern only the gateways there are travel in
// a room beside it: that an address is closed, and that backends are asked again.
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { type Message, type MessageEvents, publishTo, type RoomsBackbone } from '@keycast/backbone'
import { isProblem, type Problem, problemText } from '@keycast/protocol'
import { callsRoom, revocationsRoom, type World } from '@keycast/service'
import type { Log } from '../../sessions/session-log.ts'
import type { Change } from '../backend/decisions.ts'
import { type Revocation, readRevocation } from './revocations.ts'

export type SharedRevocations = ReturnType<typeof createSharedRevocations>

export interface Missing {
  unread: boolean
  unheard: boolean
  dropped: boolean
}

/** Messages that one read of the history may bring. */
const PAGE_MESSAGES = 256

const READ_MS = 5_000

/** Beyond it the caller is told to call again, which does no harm. */
const PUBLISH_MS = 5_000

/** Until a history that could not be read is asked for again. */
const RETRY_MS = 1_000

/**
 * A starting gateway waits for the list at most this long: otherwise a journal that is away would keep all clients out.
 */
const START_MS = 3_000

/** The publisher's name, as the journal knows it. */
const FROM = 'gateway'

/** The sessions of an address are closed. `atMs`, of the wall clock, tells two calls apart. */
interface Closing {
  address: string
  atMs: number
}

/** Backends are asked again; likewise. */
interface Asking {
  ask: Change
  atMs: number
}

interface Deps {
  backbone: Pick<RoomsBackbone, 'watch' | 'unwatch' | 'history' | 'publish' | 'isAvailable'>
  /**
   * To this gateway's list, where they may stand already, and to its sessions; `atMs`: when it was revoked. `refused`:
   * there was no place for them.
   */
  apply: (given: { revocation: Revocation; atMs: number }[]) => { refused: number }
  endAddress: (address: string) => unknown
  /** A backend decides otherwise about a user, a key or both. */
  askAgain: (change: Change) => unknown
  log?: Log
  /** A start waits this long for the list. */
  startMs?: number
  after: World['after']
  wallNow: World['wallNow']
}

export function createSharedRevocations({
  backbone,
  apply,
  endAddress,
  askAgain,
  log,
  after,
  wallNow,
  startMs = START_MS,
}: Deps) {
  /** Whether all that the history holds was applied; then only new ones come. */
  let isRead = false
  let isReading = false
  let isStopped = false
  /** A gap came while an earlier read was under way. */
  let isStale = false
  /** Some revocations are not in force here, and no read of the list will change that. */
  let wereDropped = false
  let endRetry = () => {}
  let isTold = false
  let read: () => void = () => {}
  const wasRead = new Promise<void>(resolve => {
    read = resolve
  })

  /** @param areNew whether they are not of before. Gateways once kept calls among the revocations: those of before are over */
  function applyAll(messages: Message[], areNew: boolean) {
    const given: { revocation: Revocation; atMs: number }[] = []
    let unread = 0
    for (const { at, data } of messages) {
      const said = parse(data, at)
      if (!said) unread++
      else if ('address' in said) {
        if (areNew) endAddress(said.address)
      } else if ('ask' in said) {
        if (areNew) askAgain(said.ask)
      } else given.push({ revocation: said, atMs: at })
    }
    if (unread > 0) {
      wereDropped = true
      log?.warn({ unread }, 'revocations cannot be read: a newer version of Keycast may have written them')
    }
    // Together: each pass over the sessions looks at all of them.
    const { refused } = apply(given)
    if (refused === 0) return
    wereDropped = true
    log?.warn({ refused }, 'revocations are not in force here: the list is full')
  }

  const onMessages: MessageEvents['onMessages'] = (_, { messages }) => applyAll(messages, true)

  async function readHistory() {
    if (isReading) {
      isStale = true
      return
    }
    isReading = true
    wereDropped = false
    endRetry()
    for (let after = 0, more = true, before = -1; more && !isStopped; ) {
      // A journal that goes round in circles would be asked for ever.
      if (after <= before) return readLater('the journal gave a part of it twice')
      before = after
      const page = await backbone.history(revocationsRoom, { after, limit: PAGE_MESSAGES }, { deadlineMs: READ_MS })
      if (isProblem(page)) return readLater(problemText(page))
      if (page.truncated) {
        wereDropped = true
        log?.warn('the journal has dropped old revocations: its history of them is full')
      }
      applyAll(page.messages, false)
      more = page.more
      after = page.messages.at(-1)?.seq ?? page.newest
    }
    isReading = false
    if (isStale) {
      isStale = false
      return readHistory()
    }
    if (!isRead && isTold) log?.warn('the list of revocations was read: it is complete again')
    isRead = true
    isTold = false
    read()
  }

  function readLater(why: string) {
    isReading = false
    isStale = false
    if (isStopped) return
    // Once, and not each second.
    if (!isTold) log?.warn({ why }, 'the list of revocations cannot be read: those of before are not known here')
    isTold = true
    endRetry = after(RETRY_MS, readHistory)
  }

  async function publish(room: string, said: Revocation | Closing | Asking): Promise<Problem | undefined> {
    const data = Buffer.from(JSON.stringify(said))
    // The same again, after an answer that did not come, is one message.
    const messageId = createHash('sha256').update(data).digest('base64url')
    const message = { room, messageId, from: FROM, data }
    const outcome = await publishTo(backbone, message, { deadlineMs: PUBLISH_MS })
    return isProblem(outcome) ? outcome : undefined
  }

  return {
    /** As the backbone says it of each room. */
    events: new Map<string, MessageEvents>([
      [
        revocationsRoom,
        {
          // Messages follow from here on, so what the history holds now is all that is missing.
          onHead: () => void (isRead || readHistory()),
          onMessages,
          onGap() {
            isRead = false
            void readHistory()
          },
          // The watch stands, and is answered with a head once the journal can.
          onFailed() {},
        },
      ],
      [callsRoom, { onHead() {}, onMessages, onGap() {}, onFailed() {} }],
    ]),

    /**
     * Tells every gateway, also those that start later.
     *
     * @returns the reason why they may not know
     */
    revoke: (revocation: Revocation) => publish(revocationsRoom, revocation),

    /** Has every gateway there is close the sessions of an address; likewise. */
    close: (address: string) => publish(callsRoom, { address, atMs: wallNow() }),

    /** Has every gateway there is ask backends again; likewise. */
    ask: (change: Change) => publish(callsRoom, { ask: change, atMs: wallNow() }),

    /** Resolves when the list was read, or when waiting for it would cost more. */
    async start() {
      for (const room of [revocationsRoom, callsRoom]) backbone.watch(room)
      let endWait = () => {}
      const late = new Promise<void>(resolve => {
        endWait = after(startMs, resolve)
      })
      await Promise.race([wasRead, late])
      endWait()
      if (isRead || isTold) return
      isTold = true
      log?.warn('no journal has answered yet: revocations of before are not known here')
    },

    stop() {
      isStopped = true
      endRetry()
      for (const room of [revocationsRoom, callsRoom]) backbone.unwatch(room)
    },

    /**
     * The reason why revocations may be missing here. `unread`: the list as a whole was not read yet; `unheard`: no
     * journal that has it answers, so new ones do not arrive; `dropped`: there was no place for some, or they cannot be
     * read.
     */
    missing: (): Missing => ({
      unread: !isRead,
      unheard: !backbone.isAvailable(revocationsRoom),
      dropped: wereDropped,
    }),
  }
}

function parse(data: Buffer, atMs: number): Revocation | { address: string } | { ask: Change } | undefined {
  try {
    const said = JSON.parse(data.toString())
    const { address, ask } = said
    if (typeof ask === 'object' && ask !== null) return { ask }
    if (typeof address === 'string' && isIP(address) !== 0) return { address }
    const read = readRevocation(said, atMs)
    return 'problem' in read ? undefined : read.revocation
  } catch {
    return undefined
  }
}
