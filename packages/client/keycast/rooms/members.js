// A room's members: first all of them, then each change. A change that does not follow the one before is not applied.
import { createListeners } from '../listeners.js'

/**
 * A user who joined a room. `id` is the same for all tabs of the user; an anonymous one has no `user`.
 *
 * @typedef {{ id?: string, user?: string, name: string, tabs: number }} Member
 */

/**
 * @typedef {object} MembersState
 * @property {number | undefined} count of members; undefined before it is known
 * @property {readonly Member[] | undefined} members undefined if the room only counts them
 */

/** @type {MembersState} */
export const unknownMembers = Object.freeze({ count: undefined, members: undefined })

/** @param {() => void} onHole asks for the whole again */
export function createMembers(onHole) {
  let state = unknownMembers
  /** Of the last change; undefined until the whole has come. @type {number | undefined} */
  let rev
  const listeners = createListeners(() => (state === unknownMembers ? undefined : state))

  return {
    listeners,
    /** Whether the gateway was asked for them. */
    isWanted: false,
    get state() {
      return state
    },
    /** Nothing shows that the next change follows the last one. */
    lost() {
      rev = undefined
    },
    /** The user may not know them any more. */
    forget() {
      rev = undefined
      state = unknownMembers
      listeners.tell(state)
    },
    /** @param {any} message `members` or `presence` */
    take(message) {
      const { type, count, members, joined, left = [] } = message
      const isWhole = type === 'members'
      if (!isWhole && rev === undefined) return
      if (!isWhole && message.rev !== /** @type {number} */ (rev) + 1) {
        rev = undefined
        return onHole()
      }
      rev = message.rev
      // A room that grew too large names nobody any more.
      const list = isWhole ? members : joined && state.members && change(state.members, joined, left)
      state = Object.freeze({ count, members: list && Object.freeze(list) })
      listeners.tell(state)
    },
  }
}

/** @param {readonly Member[]} members @param {Member[]} joined those who came, or changed @param {Member[]} left */
function change(members, joined, left) {
  const byId = new Map(members.map(member => [idOf(member), member]))
  for (const member of left) byId.delete(idOf(member))
  for (const member of joined) byId.set(idOf(member), member)
  return [...byId.values()]
}

/** @param {Member} member */
const idOf = ({ id, user, name }) => id ?? user ?? name
