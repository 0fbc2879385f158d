// Reads a chat's message where it lies in the read buffer, without a copy or a string: a generator that shares its
// machine with the server must take less time for a delivery than the server does.
import type { Dialect } from './dialect.ts'

const QUOTE = 0x22
const COLON = 0x3a
const ZERO = 0x30

/** A reader of one dialect's messages. */
export function createMessageReader({ messageStart }: Pick<Dialect, 'messageStart'>) {
  const start = Buffer.from(messageStart)

  /** The fields of the last message read. */
  const message = { seq: 0, us: 0 }

  /** @returns valid until the next call; `undefined` where it is no message */
  return function read(from: Buffer, at: number, end: number): { seq: number; us: number } | undefined {
    if (end - at < start.length) return undefined
    for (let index = 0; index < start.length; index++) if (from[at + index] !== start[index]) return undefined
    const seq = numberAfterSeq(from, at + start.length, end)
    const us = lastNumber(from, at, end)
    if (seq === -1 || us === -1) return undefined
    message.seq = seq
    message.us = us
    return message
  }
}

/** The number after `"seq":`; -1 where there is none. */
function numberAfterSeq(from: Buffer, at: number, end: number) {
  for (let index = at; index < end - 6; index++) {
    if (from[index] !== QUOTE || from[index + 1] !== 0x73 || from[index + 2] !== 0x65 || from[index + 3] !== 0x71)
      continue
    if (from[index + 4] !== QUOTE || from[index + 5] !== COLON) continue
    let value = 0
    let next = index + 6
    for (; isDigit(from[next]); next++) value = value * 10 + from[next] - ZERO
    return next === index + 6 ? -1 : value
  }
  return -1
}

/** The number after the last `"us":`, which stands at the end; -1 where it does not. */
function lastNumber(from: Buffer, at: number, end: number) {
  let last = end - 1
  while (last > at && !isDigit(from[last])) last--
  let first = last
  while (first > at && isDigit(from[first - 1])) first--
  const isUs =
    first - at >= 5 &&
    from[first - 1] === COLON &&
    from[first - 2] === QUOTE &&
    from[first - 3] === 0x73 &&
    from[first - 4] === 0x75 &&
    from[first - 5] === QUOTE
  if (!isUs) return -1
  let value = 0
  for (let index = first; index <= last; index++) value = value * 10 + from[index] - ZERO
  return value
}

const isDigit = (byte: number) => byte >= ZERO && byte <= 0x39
