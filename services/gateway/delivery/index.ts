// Puts delivery together: what sessions are written, when, and those that do not take it.
import type { Containment, World } from '@keycast/service'
import type { Counts } from '../counts.ts'
import { createOutbox } from './outbox.ts'
import { createSlowClients } from './slow-clients.ts'

interface Deps {
  settings: { stallMsMax: number; unsentTotalBytesMax: number; unsentBytesMax: number }
  containment: Pick<Containment, 'guard'>
  counts: Counts
  now: () => number
  turn: World['turn']
}

export function assembleDelivery({ settings, containment, counts, now, turn }: Deps) {
  const slowClients = createSlowClients({ ...settings, now })
  const { unsentBytesMax } = settings
  const outbox = createOutbox({ slowClients, unsentBytesMax, containment, counts, now, turn })
  return { ...outbox, stats: () => ({ stalled: slowClients.size() }) }
}
