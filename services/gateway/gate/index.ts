// Puts the gate together with what it alone asks: the backends' decisions, and the places that sessions take.
import { createDecisions } from '../access/backend/decisions.ts'
import { createGate } from './gate.ts'
import { createPlaces } from './places.ts'

type Deps = Omit<Parameters<typeof createGate>[0], 'decisions' | 'places'> &
  Omit<Parameters<typeof createDecisions>[0], 'onDecided' | 'namespaces'> & {
    readonly deciding: Parameters<typeof createDecisions>[0]['namespaces']
    readonly settings: Omit<Parameters<typeof createPlaces>[0], 'now'>
  }

export function assembleGate({ settings, deciding, ...deps }: Deps) {
  const { now } = deps
  const places = createPlaces({ ...settings, now })
  const decisions = createDecisions({
    ...deps,
    namespaces: deciding,
    onDecided: (...decided) => gate.decided(...decided),
  })
  const gate = createGate({ ...deps, decisions, places })
  const { decided, ...doors } = gate
  return { ...doors, forget: decisions.forget, sweep: decisions.sweep, stats: places.stats }
}
