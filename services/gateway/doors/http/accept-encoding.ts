// `Accept-Encoding` (RFC 9110 section 12.5.3): in which coding a client would have an answer.
import { type Coding, codings } from '../../encodings/codings.ts'

/** A coding, `identity` or `*`, with its weight. What is none counts as not said. */
const memberGrammar = /^[ \t]*([^\s;,]+)[ \t]*(?:;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[ \t]*)?$/i

/** @returns `undefined`: as it is, also where a client says that it does not want even that */
export function chooseCoding(header: string | undefined): Coding | undefined {
  if (header === undefined) return undefined
  const weights = new Map<string, number>()
  for (const member of header.split(',')) {
    const [, name, weight = '1'] = memberGrammar.exec(member) ?? []
    if (name !== undefined) weights.set(name.toLowerCase(), Number(weight))
  }
  const weightOf = (coding: Coding) => weights.get(coding) ?? weights.get('*') ?? 0
  const best = codings.reduce((one, other) => (weightOf(other) > weightOf(one) ? other : one))
  return weightOf(best) > 0 && weightOf(best) >= (weights.get('identity') ?? 0) ? best : undefined
}
