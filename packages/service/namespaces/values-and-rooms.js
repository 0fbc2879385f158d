// Namespaces of values and of rooms in one, for what both may have: a backend that decides who reads.

/** @typedef {import('./namespaces.js').Deciding} Deciding */

/**
 * @param {import('./namespaces.js').Namespaces & { journal: import('./namespaces.js').JournalNamespaces }} namespaces
 * @returns {{ get: (name: string) => Deciding | undefined, names: string[] }}
 */
export const valuesAndRooms = ({ get, names, journal }) => ({
  get: name => get(name) ?? journal.get(name),
  names: [...names, ...journal.names],
})
