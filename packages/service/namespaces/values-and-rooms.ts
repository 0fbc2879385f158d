// What namespaces of values and of rooms share, and those of values among themselves.
import type { AllNamespaces, Deciding, Named, ValueNamespace, ValueNamespaces } from './namespaces.ts'

/**
 * @param all without `pushed` where `get` knows those as well
 * @returns those that there are at each moment: a backend may decide who reads
 */
export const valuesAndRooms = (
  all: Named<Deciding> & { pushed?: Named<Deciding>; journal: Named<Deciding> },
): Named<Deciding> => both(all.pushed ? both(all, all.pushed) : all, all.journal)

/** @returns those of values, whether they are fetched or handed over; at each moment */
export const allOfValues = (all: Pick<AllNamespaces, 'get' | 'names' | 'pushed'>): ValueNamespaces =>
  both<ValueNamespace>(all, all.pushed)

const both = <N>(some: Named<N>, others: Named<N>): Named<N> => ({
  get: name => some.get(name) ?? others.get(name),
  get names() {
    return [...some.names, ...others.names]
  },
})

/** Whether there is something that a journal keeps. */
export const needsJournal = ({ pushed, journal }: Pick<AllNamespaces, 'pushed' | 'journal'>) =>
  pushed.names.length + journal.names.length > 0
