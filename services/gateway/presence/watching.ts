// Tells sessions who is in the rooms they follow: all members first, then every change. A session that does not take the
// changes is owed no queue of them: it is sent all members again when it does.
import { errorMessage } from '@keycast/protocol'
import { changeMembers, createMemberList, replaceMembers } from './member-list.ts'

/**
 * @typedef {import('./member-list.ts').MemberList} MemberList
 * @typedef {import('./member-list.ts').MembersWatch} MembersWatch
 * @typedef {import('../rooms/room.ts').RoomSubscription} RoomSubscription
 * @typedef {ReturnType<typeof createWatching>} Watching
 */

/**
 * @param {object} deps
 * @param {Pick<import('@keycast/backbone').RoomsBackbone, 'watchMembers' | 'unwatchMembers'>} deps.backbone
 * @param {Pick<import('../delivery/outbox.ts').Outbox, 'send' | 'sendFrame' | 'isWritable' | 'oweMembers' | 'forget'>} deps.outbox
 * @param {Pick<import('../counts.ts').Counts, 'sent' | 'conflated'>} deps.counts
 */
export function createWatching({ backbone, outbox, counts }) {
  /** By key of the room. @type {Map<string, MemberList>} */
  const lists = new Map()

  /**
   * The client was told where its stream of the room begins, and is sent the members next.
   *
   * @param {RoomSubscription} subscription
   * @param {boolean} isWanted whether it asked for that
   * @param {import('@keycast/protocol').RequestId | undefined} id of its request
   */
  function begin(subscription, isWanted, id) {
    const { session, room } = subscription
    end(subscription)
    if (!isWanted) return
    const { key, namespace } = room
    if (namespace.members === 'none') {
      const message = 'nobody is told who is in this room'
      return outbox.send(session, errorMessage('forbidden', { id, key, subscribed: true, message }))
    }
    const list = lists.get(key) ?? open(key)
    /** @type {MembersWatch} */
    const watch = { session, list, index: list.watches.length, due: 0 }
    list.watches.push(watch)
    subscription.members = watch
    if (list.isKnown) outbox.oweMembers(watch)
  }

  /** @param {RoomSubscription} subscription ends, or begins anew */
  function end(subscription) {
    const watch = subscription.members
    if (!watch) return
    subscription.members = undefined
    outbox.forget(watch)
    const { list, index } = watch
    const last = /** @type {MembersWatch} */ (list.watches.pop())
    if (last !== watch) {
      list.watches[index] = last
      last.index = index
    }
    if (list.watches.length === 0) close(list)
  }

  /** @param {string} key */
  function open(key) {
    const list = createMemberList(key)
    lists.set(key, list)
    backbone.watchMembers(key)
    return list
  }

  /** @param {MemberList} list */
  function close({ key }) {
    lists.delete(key)
    backbone.unwatchMembers(key)
  }

  /** @type {NonNullable<import('@keycast/backbone').RoomsEvents['onMembers']>} */
  function onMembers(key, said) {
    const list = lists.get(key)
    if (!list) return
    replaceMembers(list, said)
    for (const watch of list.watches) outbox.oweMembers(watch)
  }

  /** @type {NonNullable<import('@keycast/backbone').RoomsEvents['onPresence']>} */
  function onPresence(key, said) {
    const list = lists.get(key)
    if (!list) return
    const frame = changeMembers(list, said)
    for (const watch of list.watches) tell(watch, frame)
  }

  /** @param {MembersWatch} watch @param {Buffer} frame of a change */
  function tell(watch, frame) {
    const { session } = watch
    if (watch.due === 0 && outbox.isWritable(session)) {
      counts.sent.presence++
      outbox.sendFrame(session, frame)
    } else {
      counts.conflated++
      outbox.oweMembers(watch)
    }
  }

  return {
    begin,
    end,
    events: { onMembers, onPresence },
    stats: () => ({ watchedMembers: lists.size }),
  }
}
