// Maps of keycast.yaml, whose fields are known. The error for another field names the one that was probably meant.
import { excerpt } from '@keycast/protocol'
import { type core, z } from 'zod'

/** A longer name is no slip of the pen, and would take long to compare. */
const NAME_CHARACTERS_MAX = 40

/** Of so many letters one may be wrong. */
const LETTERS_PER_SLIP = 3

interface Options {
  /** For what is no map. */
  error?: string
  /** Why it has not a field that others have. */
  whyNot?: (name: string) => string | undefined
}

export function strictMap<Shape extends z.ZodRawShape>(
  shape: Shape,
  { error, whyNot = () => undefined }: Options = {},
) {
  const known = Object.keys(shape)
  const refuse = (name: string) => whyNot(name) ?? unknownField(name, known)
  return z.strictObject(shape, {
    error: issue => (issue.code === 'unrecognized_keys' ? issue.keys.map(refuse).join('\n') : error),
  })
}

/** The fields of a {@link strictMap} that it does not have, each with its message. */
export function unknownFields({ keys, message }: core.$ZodIssueUnrecognizedKeys) {
  const messages = message.split('\n')
  return keys.map((name, index) => ({ name, message: messages[index] }))
}

/** @param known in their place */
export function unknownField(name: string, known: readonly string[]) {
  const meant = nearest(name, known)
  return meant === undefined ? 'unknown field' : `unknown field: did you mean ${excerpt(meant)}?`
}

/** @param slipsMax letters that may be wrong */
export function nearest(written: string, known: readonly string[], slipsMax?: number) {
  if (written.length > NAME_CHARACTERS_MAX) return undefined
  const name = plain(written)
  const ranked = known
    .map(meant => ({ meant, slips: slipsBetween(name, plain(meant)) }))
    .filter(({ slips }) => slips <= (slipsMax ?? Math.ceil(name.length / LETTERS_PER_SLIP)))
    .sort((a, b) => a.slips - b.slips)
  return ranked.at(0)?.meant
}

/** Other tools write the same name with dashes or underscores. */
const plain = (name: string) => name.replace(/[-_]/g, '').toLowerCase()

function slipsBetween(name: string, meant: string) {
  const isCutShort = name.length >= LETTERS_PER_SLIP && meant.startsWith(name)
  return isCutShort ? 0 : distance(name, meant)
}

/** How many letters are to be put in, taken out, changed, or swapped with the next one (optimal string alignment). */
function distance(from: string, to: string) {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let line = 1; line <= from.length; line++) {
    const next = [line]
    for (let column = 1; column <= to.length; column++) {
      const changed = row[column - 1] + Number(from[line - 1] !== to[column - 1])
      const isSwap = from[line - 1] === to[column - 2] && from[line - 2] === to[column - 1]
      const swapped = isSwap ? before[column - 2] + 1 : Number.POSITIVE_INFINITY
      next.push(Math.min(changed, swapped, row[column] + 1, next[column - 1] + 1))
    }
    before = row
    row = next
  }
  return row[to.length]
}
