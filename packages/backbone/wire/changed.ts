// What a stream of changes hands to a gateway, as the body of a value: keys that changed, and values that the backend hands
// over. Only a gateway and a node of one release tell each other values.
import type { HandedOver } from '../backbone.ts'

/** A key that is to be asked for, or its value. */
export type Changed = string | HandedOver

export function encodeChanged(changed: readonly Changed[]): Buffer {
  const list = changed.map(each => {
    if (typeof each === 'string' || !each.content) return each
    const { body, ...said } = each.content
    return { ...each, content: { ...said, data: body.toString() } }
  })
  return Buffer.from(JSON.stringify(list))
}

/** @param body that a node made */
export function decodeChanged(body: Buffer): Changed[] {
  return JSON.parse(body.toString()).map((each: Changed & { content?: { data: string } }) => {
    if (typeof each === 'string' || !each.content) return each
    const { data, ...said } = each.content
    return { ...each, content: { ...said, body: Buffer.from(data) } }
  })
}
