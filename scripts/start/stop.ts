// Stops what npm start runs, in order and within a deadline, while its pm2 lives. end-leftovers.ts ends what is left.
import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from './pm2-home.ts'
import type { Supervisor } from './supervisor.ts'

/** The time that a group may take beyond its grace, until pm2 has killed it, and pm2 itself at the end. */
const SUPERVISOR_MS = 5_000

interface Options {
  /** pm2's folder. */
  home: string
  /** Services that pm2 was told to start. */
  started: ReadonlySet<string>
  /** A service may take this long to stop by itself. */
  graceMs: number
  say: (text: string) => void
}

/** @returns once all are stopped, or the deadline has passed */
export async function stop(supervisor: Supervisor, { home, started, graceMs, say }: Options): Promise<void> {
  const groups = stopOrder([...started])
  // Every group at its slowest. Without a deadline a pm2 that hangs would keep npm start from ever ending.
  const deadlineMs = groups.length * (graceMs + SUPERVISOR_MS) + SUPERVISOR_MS
  await Promise.race([stopGroups(supervisor, { home, groups, say }), delay(deadlineMs)])
}

/**
 * Groups that stop together. Gateways first: clients are told, nothing asks a service that is gone, and every publish
 * under way gets its result from the journal.
 */
export function stopOrder(services: string[]) {
  const groups = [services.filter(name => name.startsWith('gateway')), ['fetcher', 'journal'], ['data-provider']]
  return groups.map(group => group.filter(name => services.includes(name))).filter(group => group.length > 0)
}

async function stopGroups(
  supervisor: Supervisor,
  { home, groups, say }: { home: string; groups: string[][]; say: (text: string) => void },
) {
  // Without the daemon no call is answered; endMarked ends the services.
  if (!inspect(home).daemon) return
  for (const names of groups) {
    say(`stopping ${names.join(', ')}`)
    await supervisor.stop(names)
  }
  await supervisor.kill()
}
