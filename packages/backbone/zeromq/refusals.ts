// Reports strangers who are refused, once a minute and with their number: whoever reaches the port may knock as often as
// it likes.
import { createOnceAMinute } from '@keycast/service'
import type { Log } from '../gateway/link.ts'

export type Refusals = ReturnType<typeof createRefusals>

export function createRefusals({ log, now }: { log: Log; now: () => number }) {
  const isDue = createOnceAMinute(now)
  /** By text, the number since it was last said. */
  const unsaid = new Map<string, number>()

  /** @param text one of a few */
  return (fields: object, text: string) => {
    const refused = (unsaid.get(text) ?? 0) + 1
    unsaid.set(text, isDue(text) ? 0 : refused)
    if (unsaid.get(text) === 0) log.warn({ ...fields, refused }, text)
  }
}
