// The views of one map of namespaces: all that are in it at each moment, and those of some sources.
import type { AllNamespaces, AnyNamespace } from './namespaces.ts'

export function bySource(named: ReadonlyMap<string, AnyNamespace>): AllNamespaces {
  const those = <S extends AnyNamespace['source']>(...sources: S[]) => ({
    get(name: string) {
      const namespace = named.get(name)
      return namespace && isOf(namespace, sources) ? namespace : undefined
    },
    get names() {
      return Array.from(named.values()).flatMap(namespace => (isOf(namespace, sources) ? namespace.name : []))
    },
  })

  return {
    all: those('http', 'pushed', 'journal'),
    values: those('http', 'pushed'),
    fetched: those('http'),
    pushed: those('pushed'),
    journal: those('journal'),
  }
}

const isOf = <S extends AnyNamespace['source']>(
  namespace: AnyNamespace,
  sources: S[],
): namespace is Extract<AnyNamespace, { source: S }> => (sources as string[]).includes(namespace.source)

/** Whether there is something that a journal keeps. */
export const needsJournal = ({ pushed, journal }: Pick<AllNamespaces, 'pushed' | 'journal'>) =>
  pushed.names.length + journal.names.length > 0
