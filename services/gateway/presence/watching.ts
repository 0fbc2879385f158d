// Tells sessions who is in the rooms they follow: all members first, then every change. A session that does not take the
// changes is owed no queue of them: it is sent all members again when it does.
import type { RoomsBackbone, RoomsEvents } from '@keycast/backbone'
import { errorMessage, type RequestId } from '@keycast/protocol'
import type { Counts } from '../counts.ts'
import type { Outbox } from '../delivery/outbox.ts'
import type { RoomSubscription } from '../rooms/room.ts'
import { changeMembers, createMemberList, type MemberList, type MembersWatch, replaceMembers } from './member-list.ts'

export type Watching = ReturnType<typeof createWatching>

interface Deps {
  backbone: Pick<RoomsBackbone, 'watchMembers' | 'unwatchMembers'>
  outbox: Pick<Outbox, 'send' | 'sendFrame' | 'isWritable' | 'oweMembers' | 'forget'>
  counts: Pick<Counts, 'sent' | 'conflated'>
}

export function createWatching({ backbone, outbox, counts }: Deps) {
  /** By key of the room. */
  const lists = new Map<string, MemberList>()

  /**
   * The client was told where its stream of the room begins, and is sent the members next.
   *
   * @param isWanted whether it asked for that
   * @param id of its request
   */
  function begin(subscription: RoomSubscription, isWanted: boolean, id: RequestId | undefined) {
    const { session, room } = subscription
    end(subscription)
    if (!isWanted) return
    const { key, namespace } = room
    if (namespace.members === 'none') {
      const message = 'nobody is told who is in this room'
      return outbox.send(session, errorMessage({ code: 'forbidden', message }, { id, key, subscribed: true }))
    }
    const list = lists.get(key) ?? open(key)
    const watch: MembersWatch = { session, list, index: list.watches.length, due: 0 }
    list.watches.push(watch)
    subscription.members = watch
    if (list.isKnown) outbox.oweMembers(watch)
  }

  /** @param subscription ends, or begins anew */
  function end(subscription: RoomSubscription) {
    const watch = subscription.members
    if (!watch) return
    subscription.members = undefined
    outbox.forget(watch)
    const { list, index } = watch
    const last = list.watches.pop() as MembersWatch
    if (last !== watch) {
      list.watches[index] = last
      last.index = index
    }
    if (list.watches.length === 0) close(list)
  }

  function open(key: string) {
    const list = createMemberList(key)
    lists.set(key, list)
    backbone.watchMembers(key)
    return list
  }

  function close({ key }: MemberList) {
    lists.delete(key)
    backbone.unwatchMembers(key)
  }

  const onMembers: NonNullable<RoomsEvents['onMembers']> = (key, said) => {
    const list = lists.get(key)
    if (!list) return
    replaceMembers(list, said)
    for (const watch of list.watches) outbox.oweMembers(watch)
  }

  const onPresence: NonNullable<RoomsEvents['onPresence']> = (key, said) => {
    const list = lists.get(key)
    if (!list) return
    const frame = changeMembers(list, said)
    for (const watch of list.watches) tell(watch, frame)
  }

  /** @param frame of a change */
  function tell(watch: MembersWatch, frame: Buffer) {
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
