// Fields that all namespaces write in the same way: quantities, URLs, and the access check.
import { z } from 'zod'
import { duration, type Rule } from '../quantities.cjs'
import { readUrlTemplate } from './url-template.ts'

/** A day: Keycast is for live values, not an archive. */
export const DURATION_MS_MAX = 24 * 3_600_000

/** A shorter period would make each viewer of a key cost the backend as much as the key itself. */
const KEEP_MS_MIN = 1_000

/** A field written as text or as a number, read by a rule. */
export const quantity = ({ read, expects }: Rule) => {
  const error = `must be ${expects}`
  return z
    .union([z.string(), z.number()], { error })
    .transform(written => read(String(written)))
    .refine(number => !Number.isNaN(number), { error })
}

export const url = z.string({ error: 'must be a URL' }).transform((template, context) => {
  const read = readUrlTemplate(template)
  if ('problem' in read) {
    context.addIssue(read.problem)
    return z.NEVER
  }
  return read
})

const methodError = 'must be HEAD or GET'
const asking = {
  url,
  method: z.enum(['HEAD', 'GET'], { error: methodError }).default('HEAD'),
  keep: quantity(duration({ minMs: KEEP_MS_MIN, maxMs: DURATION_MS_MAX })).default(60_000),
  keepRefused: quantity(duration({ minMs: KEEP_MS_MIN, maxMs: DURATION_MS_MAX })).default(2_000),
}

/** For a namespace of values, whose `timeout` holds for it, too. */
export const authorize = z.strictObject(asking, { error: 'must be a map with url, method, keep and keepRefused' })

/** For a namespace of rooms. */
export const authorizeRooms = z.strictObject(
  { ...asking, timeout: quantity(duration({ minMs: 1, maxMs: DURATION_MS_MAX })).default(2_000) },
  { error: 'must be a map with url, method, keep, keepRefused and timeout' },
)
