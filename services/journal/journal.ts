// Puts a journal node together: publishes go through the committer into the log, and from there to the links that
// watch.
import {
  type DeleteCommand,
  type PublishCommand,
  type PutCommand,
  type RoomsHub,
  readPresenceKey,
  readPushedKey,
} from '@keycast/backbone'
import { excerpt, isProblem, namespaceOf } from '@keycast/protocol'
import {
  createOnceAMinute,
  fullness,
  type JournalNamespaces,
  type MetricMakers,
  type Payer,
  type PushedNamespaces,
  revocationsRoom,
  roomProblem,
  type Log as ServiceLog,
  type World,
} from '@keycast/service'
import { checkPublish } from './check-publish.ts'
import { createDeletions } from './deletions.ts'
import { createDeliveries } from './deliveries/deliveries.ts'
import { createExpiry } from './expiry.ts'
import { createCommitter } from './group-commit.ts'
import { createHistoryBounds } from './history-bounds.ts'
import type { Log, Retention } from './log/log.ts'
import { createJournalMetrics, exportLevels, type PublishResult } from './metrics.ts'
import { createNotifier } from './notify/notifier.ts'
import { followOtherJournals } from './other-journals.ts'
import { createPresence } from './presence/presence.ts'
import { refused } from './problems.ts'
import { publishOf, takenOf } from './pushed/put.ts'
import { createPushedValues } from './pushed/values.ts'
import { createWatchedRooms } from './watched-rooms.ts'

/**
 * Parts of the log that publishes may fill: of clients, of backends (`publish: server`), and of revocations, which are
 * kept also where nothing else is.
 */
const CLIENT_SHARE = 15 / 16
const SERVER_SHARE = 31 / 32

/** What a publisher is told beside a code that also stands for other things. */
const messages: { [code in PublishResult]?: string } = {
  capacity: 'as much as may be kept of this user, address or network is kept: older messages must go first',
}

interface Deps extends World {
  namespaces: JournalNamespaces
  /** Of values that backends hand over; absent: there are none. */
  pushed?: PushedNamespaces
  hub: RoomsHub
  /** Where messages are kept. */
  log: Log
  metrics: MetricMakers
  report: ServiceLog
  /** Ends this process: the log is broken, and nothing may be sent any more. */
  end?: (error: Error) => void
  /** A shorter history than the log was used with holds after this time. */
  shortenMs?: number
  /** Of what backends are still to be told. */
  outboxBytesMax?: number
  /** Calls backends. */
  post?: Parameters<typeof createNotifier>[0]['post']
}

const NONE: PushedNamespaces = { get: () => undefined, names: [] }

export type Journal = ReturnType<typeof createJournal>

export function createJournal({
  namespaces,
  pushed = NONE,
  hub,
  log,
  metrics,
  report,
  end = () => {},
  shortenMs = 0,
  outboxBytesMax = Number.POSITIVE_INFINITY,
  post,
  ...world
}: Deps) {
  const { now, every, turn, randomBytes } = world
  const counts = createJournalMetrics(metrics)
  const rooms = createWatchedRooms({ tell: hub.tell, log })
  const isLogDue = createOnceAMinute(now)
  const deliveries = createDeliveries({
    log,
    rooms,
    isRoom: key => namespaceProblem(key) === undefined,
    tell: hub.tell,
    counts,
    onReadFailed(error) {
      // A log that cannot be reached fails for every room.
      if (isLogDue(error.message)) report.error({ err: error }, 'the log could not be read')
    },
  })
  const presence = createPresence({
    rulesOf: key => (roomProblem(key) === undefined ? namespaces.get(namespaceOf(key)) : undefined),
    tell: hub.tell,
    onChanged: (room, everybody) => notifier.onMembers(room, everybody),
    counts,
    now,
    every,
    turn,
    randomBytes,
  })
  const committer = createCommitter({
    log,
    onKept(publish, kept) {
      const { room, messageId, from, data, isTold, value } = publish
      if (value) return values.keep(publish, kept)
      const { position, at, oldest = 1 } = kept
      const { epoch, seq } = position
      if (isTold) notifier.onKept(room, at)
      rooms.keep(room, epoch, { seq, at, from, messageId, data }, oldest)
    },
    onLate(publishes) {
      counts.late(publishes)
      if (isLogDue('late'))
        report.warn({ publishes }, 'publishes were given up before they could be kept: they are not')
    },
    onFailed(error) {
      report.error({ err: error }, 'the log could not say whether a batch was kept')
      onUncertain()
    },
    onBroken: end,
    counts,
    now,
    turn,
  })
  const values = createPushedValues({
    namespaces: pushed,
    log,
    tell: hub.tell,
    counts,
    onReadFailed: deliveries.onReadFailed,
  })
  const notifier = createNotifier({
    ...world,
    namespaces,
    outbox: log.outbox,
    between: committer.between,
    occupied: presence.occupied,
    bytesMax: outboxBytesMax,
    counts: { called: counts.notified, told: counts.toldBackend },
    report,
    post,
  })
  const deletions = createDeletions({
    log,
    isTold: notifier.isTold,
    between: committer.between,
    onDeleted(room, notice) {
      deliveries.forget(room)
      // Also where its backend is told nothing any more: it was as the log wrote, and may be again.
      notifier.onKept(room, notice.message.at)
      const { epoch, oldest, message } = notice
      rooms.keep(room, epoch, message, oldest)
    },
    turn,
  })
  const bounds = createHistoryBounds({ namespaces, notes: log.notes, shortenMs, report })
  const expiry = createExpiry({
    log,
    bounds,
    onTrimmed: rooms.expire,
    onFailed(error) {
      if (isLogDue(`expire ${error}`)) report.error({ err: error }, 'old messages could not be removed')
    },
    between: committer.between,
    now,
    every,
  })
  exportLevels(metrics, { hub, log, committer, deliveries, rooms, values, presence, bounds, notifier })
  let isServing = false
  let isFull = false
  let stopNews = () => {}

  function namespaceProblem(key: string) {
    const problem = roomProblem(key)
    if (problem || namespaces.get(namespaceOf(key))) return problem
    return `no namespace ${excerpt(namespaceOf(key))} here`
  }

  function onCommand(
    link: string,
    id: string,
    command: PublishCommand | DeleteCommand | PutCommand,
    leftMs: number,
    payer?: Payer,
  ) {
    if (command.type === 'put') return onPut(link, id, command, leftMs)
    if (command.type === 'delete') return void onDelete(link, id, command)
    const problem = checkPublish(command, namespaces)
    if (problem) return refuse(link, id, problem)
    const { room, messageId, from, data } = command
    const retention = bounds.retentionOf(room) as Retention
    const publish = {
      room,
      messageId,
      from,
      data,
      retention,
      share: shareOf(room),
      payer,
      isTold: notifier.isTold(room),
    }
    const refusal = committer.publish(publish, now() + leftMs, outcome => {
      if (outcome.error !== undefined) {
        if (outcome.error === 'log_full') reportFull()
        return refuse(link, id, outcome.error as Exclude<typeof outcome.error, 'older'>)
      }
      isFull = false
      counts.published(outcome.duplicate ? 'duplicate' : 'kept')
      const { position, at, duplicate } = outcome
      hub.tellResult(link, id, { ...position, at, duplicate })
    })
    if (refusal) refuse(link, id, refusal)
  }

  function onPut(link: string, id: string, command: PutCommand, leftMs: number) {
    // Its gateway has given it up, and a newer value may have come by another.
    if (leftMs <= 0) return
    const tell = (taken: ReturnType<typeof takenOf>) => {
      counts.handedOver('outcome' in taken ? taken.outcome : 'refused')
      hub.tellResult(link, id, isProblem(taken) ? refused(taken) : taken)
    }
    const publish = publishOf(command, { namespaces: pushed, share: SERVER_SHARE })
    if ('code' in publish) return tell(publish)
    const error = committer.publish(publish, now() + leftMs, outcome => {
      if (outcome.error === 'log_full') reportFull()
      else if (outcome.error === undefined) isFull = false
      tell(takenOf(outcome))
    })
    if (error) tell(takenOf({ error }))
  }

  async function onDelete(link: string, id: string, command: DeleteCommand) {
    const outcome = await deletions.delete(command)
    if (!isProblem(outcome)) counts.deleted(outcome.messages)
    hub.tellResult(link, id, isProblem(outcome) ? refused(outcome) : outcome)
  }

  function shareOf(room: string) {
    if (room === revocationsRoom) return 1
    return namespaces.get(namespaceOf(room))?.publish === 'server' ? SERVER_SHARE : CLIENT_SHARE
  }

  function refuse(link: string, id: string, code: Exclude<PublishResult, 'kept' | 'duplicate'>) {
    counts.published(code)
    hub.tellResult(link, id, refused({ code, message: messages[code] }))
  }

  /** Logged once, until a message is kept again. */
  function reportFull() {
    if (isFull) return
    isFull = true
    report.error(
      { ...log.stats(), disk: log.disk?.() },
      'a publish was refused, for the log has no room: it has all that JOURNAL_BYTES_MAX lets it keep, or its disk is full',
    )
  }

  /** A key names a value, a room's members or a room's messages. */
  const partOf = (key: string) =>
    readPushedKey(key) !== undefined ? values : readPresenceKey(key) ? presence : deliveries

  /** Rooms of a log that many share are compared with it each second, by the thousand: one by one they take many. */
  function onUncertain() {
    if (log.news) return
    deliveries.onUncertain()
    values.onUncertain()
  }

  /**
   * The log was further than it is: its disk was replaced by an older state. Its next numbers were given before, to other
   * messages, and so belong to another epoch. The gateway says it again until it sees that.
   */
  function onLogAhead(link: string, id: string, before: number) {
    const renewing = committer.between(async () => {
      const at = log.at?.()
      if (id !== log.id() || at === undefined || at >= before) return
      if (!(await log.renew?.())) return
      report.error(
        { link, at, before, from: id, to: log.id() },
        'the log is in an older state than a gateway was told of: messages are missing, and every room has a new epoch',
      )
      onUncertain()
    })
    renewing.catch(end)
  }

  /** Resolves once gateways can connect. */
  async function start() {
    await bounds.settle()
    await hub.start({
      onWatch: (link, want) => partOf(want.key).onWatch(link, want),
      onUnwatch: (link, key, hasLeft) => partOf(key).onUnwatch(link, key, hasLeft),
      onGet: (link, want) => partOf(want.key).onGet(link, want),
      onCancelGet: (link, key) => partOf(key).onCancelGet(link, key),
      onLinkLost(link) {
        deliveries.onLinkLost(link)
        values.onLinkLost(link)
        return presence.onLinkLost(link)
      },
      onCommand,
      answersFor: (link, key, bytesLeft) => partOf(key).answersFor(link, key, bytesLeft),
      logId: log.id,
      logAt: () => log.at?.(),
      isCutOff: () => log.notReady?.() !== undefined,
      onLogAhead,
      headsFor(link) {
        values.retry(link)
        return deliveries.headsFor(link)
      },
    })
    expiry.start()
    await notifier.start()
    if (log.news) {
      stopNews = followOtherJournals({
        news: log.news,
        followers: [rooms, values],
        onReached: values.setReached,
        every,
      })
    }
    isServing = true
  }

  return {
    start,
    /**
     * A room's state and the links that are sent it, for an operator who asks why a message did not arrive.
     *
     * @throws {Error} where the log cannot be read
     */
    async describe(key: string) {
      const problem = namespaceProblem(key)
      if (problem !== undefined) return { problem }
      const { epoch, seq, oldest, bytes } = await log.head(key)
      return { key, epoch, seq, oldest, bytes, links: deliveries.linksOf(key), members: presence.countsOf(key) }
    },
    problems() {
      const { bytes, bytesMax } = log.stats()
      return fullness('messages', bytes, { max: bytesMax, setting: 'JOURNAL_BYTES_MAX' })
    },
    /** keycast.yaml changed: the namespaces have their new rules already. */
    reconfigure: bounds.renew,
    notReady: () => (isServing ? log.notReady?.() : 'not serving'),
    /** Accepts no more publishes, answers those accepted, and says goodbye to gateways. */
    async stop() {
      isServing = false
      expiry.stop()
      stopNews()
      presence.stop()
      await notifier.stop()
      await committer.stop()
      await hub.stop()
    },
  }
}
