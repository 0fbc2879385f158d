// The part that namespaces of values and of rooms share: a backend that decides who reads.

/** @typedef {import('./namespaces.ts').Deciding} Deciding */

/**
 * @param {import('./namespaces.ts').Namespaces & { journal: import('./namespaces.ts').JournalNamespaces }} namespaces
 * @returns {{ get: (name: string) => Deciding | undefined, names: string[] }}
 */
export const valuesAndRooms = ({ get, names, journal }) => ({
  get: name => get(name) ?? journal.get(name),
  names: [...names, ...journal.names],
})
