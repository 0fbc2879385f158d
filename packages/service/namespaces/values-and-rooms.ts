// The part that namespaces of values and of rooms share: a backend that decides who reads.
import type { Deciding, JournalNamespaces, Namespaces } from './namespaces.ts'

export const valuesAndRooms = ({
  get,
  names,
  journal,
}: Namespaces & { journal: JournalNamespaces }): { get: (name: string) => Deciding | undefined; names: string[] } => ({
  get: name => get(name) ?? journal.get(name),
  names: [...names, ...journal.names],
})
