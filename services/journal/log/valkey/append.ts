// How publishes are given to valkey.lua's append, and how its reply is read.
import { createHash } from 'node:crypto'
import { accountsOf, type Payer, weightOf } from '@keycast/service'
import { drawCharge, kindOf } from '../charges.ts'
import { bytesOf, type Outcome, type Publish, ROOM_BYTES } from '../log.ts'
import { rankOf } from './messages.ts'

/** Limits of one call, one publish at least: while it runs, Valkey serves nobody else. */
const CALL_PUBLISHES_MAX = 100
const CALL_BYTES_MAX = 256 * 1024

/** The names of the functions for outcomes. */
const KEPT = 0
const DUPLICATE = 1
const CONFLICT = 2
const CAPACITY = 4
const OLDER = 5

/** As in valkey.lua. */
const ID_BYTES = 192

/** A bound that no account comes to: Lua reads no infinity. */
const BOUNDLESS = 1e9

/**
 * The reply of append: the epoch, the bytes and rooms held, and of each publish an outcome, a seq, a time and the oldest seq;
 * of a value its order, and the rank before it or nothing.
 */
export type Appended = [
  epoch: string,
  bytes: number,
  rooms: number,
  outcomes: [what: number, seq: number, at: number, oldest: number, order?: number, rank?: string][],
]

/**
 * Publishes in parts, each room's together and in their order: a room costs the same reads and writes for one publish
 * as for fifty.
 */
export function callsOf(publishes: Publish[]): Publish[][] {
  const byRoom = new Map<string, Publish[]>()
  for (const publish of publishes) {
    const together = byRoom.get(publish.room)
    if (together) together.push(publish)
    else byRoom.set(publish.room, [publish])
  }
  const calls: Publish[][] = []
  let bytes = 0
  for (const publish of [...byRoom.values()].flat()) {
    const last = calls.at(-1)
    bytes += publish.data.length
    if (last && last.length < CALL_PUBLISHES_MAX && bytes <= CALL_BYTES_MAX) last.push(publish)
    else {
      calls.push([publish])
      bytes = publish.data.length
    }
  }
  return calls
}

/** What the function takes of publishes. @param bytesMax of the log */
export function argumentsOf(publishes: Publish[], { bytesMax, random }: { bytesMax: number; random: () => number }) {
  const chargeOf = (payer: Payer | undefined, bytes: number) =>
    payer === undefined ? '0' : String(drawCharge(bytes, { bytesMax, random }))
  const args: (string | Buffer)[] = []
  for (const { room, from, messageId, data, retention, share = 1, payer, value, isTold } of publishes) {
    const digest = messageId === undefined ? '' : createHash('sha256').update(data).digest('base64url').slice(0, 22)
    const { messages, ageMs, bytes } = retention
    args.push(room, from, messageId ?? '', digest, data, String(messages), String(ageMs), String(bytes))
    args.push(String(bytesMax * share))
    const ownBytes = bytesOf({ data, from, messageId }) + (messageId === undefined ? 0 : ID_BYTES)
    args.push(...payingOf(payer), chargeOf(payer, ownBytes), chargeOf(payer, ROOM_BYTES))
    args.push(value ? `v${value.rank ?? ''}` : '', isTold ? '1' : '')
  }
  return args
}

/** @returns whom valkey.lua charges, and how many times what is left each account may hold */
const payingOf = (payer: Payer | undefined): [string, string] =>
  payer === undefined
    ? ['', '']
    : [
        `#${kindOf(payer)}.${payer}`,
        accountsOf(payer)
          .map(account => `${account}=${Math.min(BOUNDLESS, weightOf(account))};`)
          .join(''),
      ]

export function outcomesOf([epoch, , , outcomes]: Appended): Outcome[] {
  return outcomes.map(([what, seq, at, oldest, order, rank]) => {
    if (what === KEPT || what === DUPLICATE) {
      const kept = { position: { epoch, seq }, at, oldest, duplicate: what === DUPLICATE }
      return order === undefined ? kept : { ...kept, value: { order, rankBefore: rankOf(rank) } }
    }
    if (what === OLDER) return { error: 'older', rank: Number(rank) }
    return { error: what === CONFLICT ? 'id_conflict' : what === CAPACITY ? 'capacity' : 'log_full' }
  })
}
