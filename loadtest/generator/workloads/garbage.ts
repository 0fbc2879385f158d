// Clients that send tokens which are none, as fast as they are told: each with `auth`, at fixed times.
import type { Client } from '../client.ts'
import { encodeFrame } from '../frames.ts'
import { createGarbageMaker, type Signing } from '../tokens.ts'
import type { CreateWorkload } from '../workload.ts'

/** Enough of a message to tell an error. */
const HEAD_BYTES = 15

export const counts = ['sent', 'answered', 'lost', 'unexpected'] as const
export const histograms = [] as const

export const createWorkload: CreateWorkload<{ signing: Signing; intervalMs: number }, typeof counts, never> = ({
  settings: { signing, intervalMs },
  tally,
  newSchedule,
}) => {
  const make = createGarbageMaker(signing)
  interface Attacker {
    client: Client
    waiting: number
  }
  const attackers = new Set<Attacker>()
  const schedule = newSchedule<Attacker>(intervalMs, ({ item }) => {
    item.waiting += 1
    tally.counts.sent += 1
    item.client.send(encodeFrame(`{"type":"auth","id":1,"token":"${make()}"}`))
  })

  return {
    behaviour: {
      headBytesMax: HEAD_BYTES,
      open(client) {
        const attacker: Attacker = { client, waiting: 0 }
        attackers.add(attacker)
        const entry = schedule.add(attacker)
        return {
          onMessage(head) {
            if (head.startsWith('{"type":"error"')) {
              attacker.waiting -= 1
              tally.counts.answered += 1
            } else if (!head.startsWith('{"type":"welco') && !head.startsWith('{"type":"closi')) {
              tally.counts.unexpected += 1
            }
          },
          onEnd() {
            schedule.remove(entry)
            attackers.delete(attacker)
            tally.counts.lost += attacker.waiting
          },
        }
      },
    },
    outstanding() {
      let sum = 0
      for (const { waiting } of attackers) sum += waiting
      return sum
    },
    /** The bystanders were measured alone: begin. */
    tell: () => schedule.start(),
    stop: () => schedule.stop(),
  }
}
