// Tells sessions who is in the rooms they are subscribed to: all members first, then every change. A session that does not
// take the changes is owed no queue of them: it is sent all members again when it does.
import type { RoomsBackbone, RoomsEvents } from '@keycast/backbone'
import { type ControlMessage, isProblem, type Problem } from '@keycast/protocol'
import type { Counts } from '../../../counts.ts'
import type { Watcher } from '../../../gate/gate.ts'
import type { Session } from '../../../sessions/session.ts'
import { errorAbout, type Subscription } from '../../topics.ts'
import { MEMBERS, type RoomSubscription, subscriptionTo } from '../room.ts'
import { LIST_PLACES, type RoomPlaces } from '../room-places.ts'
import { changeMembers, createMemberList, type MemberList, replaceMembers } from './member-list.ts'

interface Deps {
  backbone: Pick<RoomsBackbone, 'watchMembers' | 'unwatchMembers'>
  outbox: {
    owe(subscription: Subscription, bits: number): void
    send(session: Session, message: ControlMessage): void
    sendFrame(session: Session, frame: Buffer): void
    takesChanges(session: Session): boolean
  }
  places: RoomPlaces
  counts: Pick<Counts, 'sent' | 'conflated'>
}

export function createDueMembers({ backbone, outbox, places, counts }: Deps) {
  /** By key of the room. */
  const lists = new Map<string, MemberList>()
  /**
   * Lists that nobody is told of since the last sweep. A client that subscribes again and again is sent what is known: else
   * the journal would make all of it anew each time.
   */
  const left = new Set<MemberList>()

  /**
   * The client is told where its stream of the room begins, and is sent the members next.
   *
   * @returns why it is told of none
   */
  function begin(subscription: RoomSubscription): Problem | undefined {
    const { session, topic } = subscription
    const known = lists.get(topic.key)
    if (!known && !places.hasRoom(session, LIST_PLACES)) return { code: 'capacity' }
    const list = known ?? open(topic.key, session)
    // One who was told before pays no more.
    if (list.subscriptions.length === 0) places.leave(list.place, list.place.session, session)
    subscription.members = { list, index: list.subscriptions.push(subscription) - 1 }
    if (list.isKnown) outbox.owe(subscription, MEMBERS)
    return undefined
  }

  /** @param subscription ends, or begins anew */
  function end(subscription: RoomSubscription) {
    const { members } = subscription
    if (!members) return
    subscription.members = undefined
    const { list, index } = members
    const last = list.subscriptions.pop() as RoomSubscription
    if (last !== subscription && last.members) {
      list.subscriptions[index] = last
      last.members.index = index
    }
    if (list.subscriptions.length === 0) left.add(list)
    else places.leave(list.place, subscription.session, list.subscriptions[0].session)
  }

  function open(key: string, session: Session) {
    const list = createMemberList(key, places.take(session, LIST_PLACES))
    lists.set(key, list)
    backbone.watchMembers(key)
    return list
  }

  function close({ key, place }: MemberList) {
    lists.delete(key)
    backbone.unwatchMembers(key)
    places.giveBack(place)
  }

  const onMembers: NonNullable<RoomsEvents['onMembers']> = (key, said) => {
    const list = lists.get(key)
    if (!list) return
    replaceMembers(list, said)
    for (const subscription of list.subscriptions) outbox.owe(subscription, MEMBERS)
  }

  const onPresence: NonNullable<RoomsEvents['onPresence']> = (key, said) => {
    const list = lists.get(key)
    if (!list) return
    const frame = changeMembers(list, said)
    for (const subscription of list.subscriptions) tell(subscription, frame)
  }

  /** @param frame of a change */
  function tell(subscription: RoomSubscription, frame: Buffer) {
    const { session } = subscription
    if ((subscription.due & MEMBERS) === 0 && outbox.takesChanges(session)) {
      counts.sent.presence++
      outbox.sendFrame(session, frame)
    } else {
      counts.conflated++
      outbox.owe(subscription, MEMBERS)
    }
  }

  /** Rights that a session has no more end what it is told of the members, and not its subscription. */
  const watcher: Watcher = {
    keysOf: session => [...session.subscriptions.keys()].filter(key => subscriptionTo(session, key)?.members),
    decided(session, key, outcome) {
      const subscription = subscriptionTo(session, key)
      if (!subscription || !isProblem(outcome)) return
      end(subscription)
      outbox.send(session, errorAbout(session, key, outcome))
    },
  }

  return {
    begin,
    end,
    watcher,
    events: { onMembers, onPresence },

    sweep() {
      for (const list of left) if (list.subscriptions.length === 0) close(list)
      left.clear()
    },

    stats: () => ({ watchedMembers: lists.size }),
  }
}
