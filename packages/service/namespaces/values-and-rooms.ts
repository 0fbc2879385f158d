// The part that namespaces of values and of rooms share: a backend that decides who reads.
import type { AllNamespaces, Deciding } from './namespaces.ts'

/** @returns those that there are at each moment */
export const valuesAndRooms = (
  all: AllNamespaces,
): { get: (name: string) => Deciding | undefined; readonly names: string[] } => ({
  get: name => all.get(name) ?? all.journal.get(name),
  get names() {
    return [...all.names, ...all.journal.names]
  },
})
