// The content that the reference programs serve, and their options.
import { Command } from 'commander'
import { readDuration, readInteger, readPort, readSize } from '../command-line/options.ts'

/** @returns `change`: milliseconds between two ticks of a key */
export function readArguments({ name, about }: { name: string; about: string }): {
  host: string
  port: number
  bytes: number
  change: number
  workers: number
} {
  return new Command(name)
    .description(about)
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on; 0: any free one', readPort, 8090)
    .option('--bytes <size>', 'length of the document every get is answered with', readSize, 130_000)
    .option('--change <duration>', 'how often a subscribed tick:… key changes', readDuration, 500)
    .option('--workers <n>', 'processes that share the port', readInteger(1, 64), 1)
    .parse()
    .opts()
}

/** A conversation of about so many bytes. */
export function documentOf(bytes: number) {
  const text = 'The quick brown fox jumps over the lazy dog, and the conversation goes on from there.'
  const messages = []
  for (let length = 60, id = 1; length < bytes; id++) {
    const message = { id, author: `author-${id % 7}`, at: '2026-01-01T00:00:00.000Z', text }
    length += JSON.stringify(message).length + 1
    messages.push(message)
  }
  return { id: '1', revision: 1, messages }
}

/** Keys change at different times, as those of a backend do: its multiples fall evenly into a period. */
const GOLDEN_RATIO = 0.618_034

/**
 * A key's changes: the time, as the simulated backend gives it. Each is due at a time fixed beforehand and carries that
 * time: a server that falls behind has late changes, not fewer. Processes that share a port change a key at the same
 * times.
 *
 * @param key as in tick:7
 */
export function onTick(key: string, everyMs: number, listener: (data: { ns: string }) => void) {
  const number = Number(/\d+$/.exec(key)?.[0] ?? 1)
  const everyNs = BigInt(Math.round(everyMs * 1e6))
  const phaseNs = BigInt(Math.round(((number * GOLDEN_RATIO) % 1) * everyMs * 1e6))
  let dueNs = (process.hrtime.bigint() / everyNs + 1n) * everyNs + phaseNs
  const waitMs = () => Math.max(0, Number(dueNs - process.hrtime.bigint()) / 1e6)
  const tick = () => {
    // A timer may fire a little early.
    if (waitMs() < 1) {
      listener({ ns: dueNs.toString() })
      dueNs += everyNs
    }
    setTimeout(tick, waitMs())
  }
  setTimeout(tick, waitMs())
}

export const welcome = {
  type: 'welcome',
  session: 'reference',
  heartbeatMs: 0,
  limits: { messageBytes: 65_536, keysPerSession: 100_000, requestsPerSecond: 1e9 },
}

/** The only kind of key whose values change here. */
export const changes = (key: string) => key.startsWith('tick:')

/** A key whose messages clients publish. */
export const isRoom = (key: string) => key.startsWith('room:')
