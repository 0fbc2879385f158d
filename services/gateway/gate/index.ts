// Puts the gate together with what it alone asks: the backends' decisions, and the places that sessions take.
import { valuesAndRooms } from '@keycast/service'
import { createDecisions } from '../access/backend/decisions.ts'
import { createGate } from './gate.ts'
import { createPlaces } from './places.ts'

type Deps = Omit<Parameters<typeof createGate>[0], 'decisions' | 'places'> &
  Omit<Parameters<typeof createDecisions>[0], 'onDecided' | 'namespaces'> & {
    readonly settings: Parameters<typeof createPlaces>[0]
  }

export function assembleGate({ settings, namespaces, counts, ...deps }: Deps) {
  const places = createPlaces(settings)
  const decisions = createDecisions({
    ...deps,
    counts,
    namespaces: valuesAndRooms(namespaces),
    onDecided: (...decided) => gate.decided(...decided),
  })
  const gate = createGate({ namespaces, counts, decisions, places })
  const { decided, ...doors } = gate
  return { ...doors, forget: decisions.forget, sweep: decisions.sweep, stats: places.stats }
}
