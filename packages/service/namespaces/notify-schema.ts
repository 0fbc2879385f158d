// `notify` of a namespace in keycast.yaml: where a backend is told what happens in Keycast, and what of.
import { z } from 'zod'
import { duration } from '../quantities.cjs'
import { quantity, urlOfAll } from './fields.ts'
import { strictMap } from './strict-map.ts'

/** `secretFiles`: each holds a secret that signs, two while one takes the place of the other. */
export interface Notify {
  url: string
  secretFiles: string[]
  timeoutMs: number
}

/** Of a namespace of rooms. */
export interface RoomsNotify extends Notify {
  messages: boolean
  members: boolean
}

/** A process has a call's content in memory meanwhile. */
const NOTIFY_MS_MAX = 60_000

const filesError = 'must be a list of one path, or of two while secrets change'
const flag = z.boolean({ error: 'must be true or false' })

const calling = {
  url: urlOfAll('must hold no {id}: each call names its keys'),
  secretFiles: z
    .array(z.string({ error: filesError }).min(1, { error: filesError }), { error: filesError })
    .min(1, { error: filesError })
    .max(2, { error: filesError }),
  timeout: quantity(duration({ minMs: 1, maxMs: NOTIFY_MS_MAX })).default(5_000),
}

export const notifyOfRooms = strictMap(
  { ...calling, messages: flag.default(true), members: flag.default(false) },
  { error: 'must be a map with url, secretFiles, timeout, messages and members' },
)

export const notifyOfValues = strictMap(
  { ...calling, viewers: z.literal(true, { error: 'must be true: of values a backend is told nothing else' }) },
  { error: 'must be a map with url, secretFiles, timeout and viewers' },
)

export const notifyOf = ({ url, secretFiles, timeout }: z.output<typeof notifyOfValues | typeof notifyOfRooms>) => ({
  url: url.url,
  secretFiles,
  timeoutMs: timeout,
})
