// Walks once over all rooms that hold messages, and has each keep what its `history` says now: it may have changed since the
// room's last publish.
import type { Retention } from '../log.ts'
import type { Session } from './connection.ts'
import { call, scan } from './functions.ts'

type RetentionOf = (room: string) => Retention | undefined

interface Deps {
  /** The sorted set that has every room. */
  rooms: string
  /** Rooms of one step. */
  atOnce: number
  /** The time for a call; none if Valkey is to look at its clock. */
  time: () => string
}

export function createRetentionWalk({ rooms: key, atOnce, time }: Deps) {
  let walk = newWalk()

  return {
    /**
     * A step of a walk for each retention, in each epoch: the function is another one when histories changed. In another
     * epoch a cursor says nothing, and what was done before may be lost.
     *
     * @returns whether there is more to do
     */
    async step(session: Session, retentionOf: RetentionOf, epoch: string): Promise<boolean> {
      if (walk.retentionOf !== retentionOf || walk.epoch !== epoch) walk = newWalk(retentionOf, epoch)
      if (walk.isOver) return false
      if (walk.rooms.length === 0) {
        const { members, cursor } = await scan(session, key, walk.cursor, atOnce)
        walk.cursor = cursor
        walk.rooms = members.map(({ room }) => room).filter(room => retentionOf(room) !== undefined)
      }
      const args = walk.rooms.slice(0, atOnce).flatMap(room => {
        const { messages, ageMs, bytes } = retentionOf(room) as Retention
        return [room, String(messages), String(ageMs), String(bytes)]
      })
      const [done] = await call<number[]>(session, 'retain', time(), ...args)
      walk.rooms = walk.rooms.slice(done)
      walk.isOver = walk.rooms.length === 0 && walk.cursor === '0'
      return !walk.isOver
    },
  }
}

const newWalk = (retentionOf?: RetentionOf, epoch = '') => ({
  retentionOf,
  epoch,
  cursor: '0',
  rooms: [] as string[],
  isOver: false,
})
