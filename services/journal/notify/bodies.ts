// What a backend is told, as JSON (docs/http-api.md#what-your-backend-is-told).
import type { Untellable, Untold } from '../log/log.ts'

/** Data is JSON already, which was checked when it was published. */
export function messagesBody(key: string, messages: Untold[], gap: Untellable | undefined): string {
  const head = JSON.stringify({ key, gap }).slice(0, -1)
  return `${head},"messages":[${messages.map(messageText).join()}]}`
}

function messageText({ epoch, seq, at, from, messageId, data, deletes }: Untold): string {
  const head = { epoch, seq, at, from: from === '' ? undefined : from, messageId }
  if (deletes) return JSON.stringify({ ...head, deletes })
  return `${JSON.stringify(head).slice(0, -1)},"data":${data}}`
}
