// Puts the gate together with what it alone asks: the backends' decisions, and how many keys sessions may hold.
import { createDecisions } from '../access/backend/decisions.ts'
import { createGate } from './gate.ts'
import { createQuota } from './quota.ts'

type Deps = Omit<Parameters<typeof createGate>[0], 'decisions' | 'quota'> &
  Omit<Parameters<typeof createDecisions>[0], 'onDecided'> & {
    readonly settings: Parameters<typeof createQuota>[0]
  }

export type GatePart = ReturnType<typeof assembleGate>

export function assembleGate({ settings, ...deps }: Deps) {
  const quota = createQuota(settings)
  const decisions = createDecisions({
    ...deps,
    onDecided: (...decided) => gate.decided(...decided),
  })
  const gate = createGate({ ...deps, decisions, quota })
  const { decided, ...doors } = gate
  const { forget, askAgain, changed, sweep } = decisions
  return { ...doors, forget, askAgain, changed, sweep, stats: quota.stats }
}
