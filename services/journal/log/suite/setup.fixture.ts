// What the tests of a log have in common: a fresh log with a clock, messages, ids.
import { randomBytes } from 'node:crypto'
import { realWorld, type World } from '@keycast/service'
import { ID_BYTES, type Log, type Publish } from '../log.ts'

export const DAY_MS = 86_400_000
export const roomy = { messages: 1_000, ageMs: DAY_MS, bytes: 2 ** 24 }
export const newId = () => randomBytes(12).toString('base64url')

export interface Deps {
  /** A fresh, empty log. */
  open: (options: World & { bytesMax: number }) => Promise<Log>
  /** That an id counts. */
  idBytes?: number
  /** Messages that one call trims. */
  trimsMax?: number
  /** Whether it says itself what it trimmed. */
  tellsTrims?: boolean
  keepsFloors?: boolean
}

export type Suite = ReturnType<typeof createSuite>

export function createSuite({ open, idBytes = ID_BYTES, trimsMax = 10_000 }: Deps) {
  const opened: Log[] = []
  afterEach(async () => {
    for (const log of opened.splice(0)) await log.close()
  })

  async function setup({ bytesMax = 2 ** 30 }: { bytesMax?: number } = {}) {
    const clock = { at: 1_700_000_000_000 }
    const log = await open({ ...realWorld, now: () => clock.at, wallNow: () => clock.at, bytesMax })
    opened.push(log)
    const publishOf = ({ text = 'x', ...publish }: Partial<Publish> & { text?: string } = {}): Publish => ({
      room: 'room:1',
      messageId: newId(),
      from: 'ann',
      data: Buffer.from(JSON.stringify(text)),
      retention: roomy,
      ...publish,
    })
    const append = (...publishes: Parameters<typeof publishOf>[0][]): Promise<any[]> =>
      log.append(publishes.map(publishOf))
    const read = async (
      room: string,
      range: Partial<{ after: number; before: number; limit: number; bytesMax: number; epoch: string }> = {},
    ) => {
      const bounds = range.before === undefined ? { after: range.after ?? 0 } : { before: range.before }
      const { head, messages } = await log.read(room, { limit: 1e6, bytesMax: 1e9, ...range, ...bounds } as any)
      return { head, seqs: messages.map(({ seq }) => seq), messages }
    }
    return { log, clock, append, read, publishOf }
  }

  return { setup, idBytes, trimsMax }
}
