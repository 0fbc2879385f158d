// What namespaces of values and of rooms share, and those of values among themselves.
import type { AllNamespaces, Deciding, Named, ValueNamespaces } from './namespaces.ts'

/**
 * @param all without `pushed` where `get` knows those as well
 * @returns those that there are at each moment: a backend may decide who reads
 */
export const valuesAndRooms = (
  all: Named<Deciding> & { pushed?: Named<Deciding>; journal: Named<Deciding> },
): Named<Deciding> => ({
  get: name => all.get(name) ?? all.pushed?.get(name) ?? all.journal.get(name),
  get names() {
    return [...all.names, ...(all.pushed?.names ?? []), ...all.journal.names]
  },
})

/** @returns those of values, whether they are fetched or handed over; at each moment */
export const allOfValues = (all: Pick<AllNamespaces, 'get' | 'names' | 'pushed'>): ValueNamespaces => ({
  get: name => all.get(name) ?? all.pushed.get(name),
  get names() {
    return [...all.names, ...all.pushed.names]
  },
})

/** Whether there is something that a journal keeps. */
export const needsJournal = ({ pushed, journal }: Pick<AllNamespaces, 'pushed' | 'journal'>) =>
  pushed.names.length + journal.names.length > 0
