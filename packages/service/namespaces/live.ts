// The namespaces of a process while keycast.yaml changes under it. A namespace is one object for as long as the process
// runs, whose fields become those of the new file: whatever holds it has its rules of now. One that is removed keeps its
// object, for keys of it are still held: without that they would be asked of the old backend when it comes back.
import { Misconfigured } from '../misconfigured.ts'
import { bySource } from './by-source.ts'
import type { AnyNamespace, Namespace, ReadNamespaces } from './namespaces.ts'

export type LiveNamespaces = ReturnType<typeof createLiveNamespaces>

/** By what happened, the names of namespaces. */
export interface NamespaceChanges {
  /** The backend gets another request for a key: what it said to the one before may be about something else. */
  request: ReadonlySet<string>
  /** Keys are due at other times. `before`: the longest age of a value that was still fresh. */
  times: ReadonlyMap<string, { beforeMs: number }>
  /** A backend decides who reads, and did not; or the other way round. */
  decided: ReadonlySet<string>
  /** The backend that decides is another, or is asked otherwise. */
  authorize: ReadonlySet<string>
}

const requestFields = ['url', 'batch', 'method', 'body', 'headers', 'token', 'redirects', 'asHeaders']

const timeFields = ['refresh', 'timeout']

/** Of the request that asks who may read. */
const authorizeFields = ['authorize', 'asHeaders']

export function createLiveNamespaces(first: ReadNamespaces) {
  const named = new Map<string, AnyNamespace>()
  /** As they were written last, those that are gone included. */
  const known = new Map<string, { namespace: AnyNamespace; written: ReturnType<ReadNamespaces['written']> }>()
  const live = bySource(named)
  const written = (name: string) => known.get(name)?.written ?? {}
  fill(first, () => false)

  /** @param keepsAuthorize whether what backends said still holds, where they were asked before */
  function fill(next: ReadNamespaces, keepsAuthorize: (name: string) => boolean) {
    for (const name of named.keys()) if (!next.all.get(name)) named.delete(name)
    for (const name of next.all.names) {
      const read = next.all.get(name) as AnyNamespace
      const namespace = known.get(name)?.namespace ?? read
      renew(namespace, read, keepsAuthorize(name))
      named.set(name, namespace)
      known.set(name, { namespace, written: next.written(name) })
    }
  }

  /** Why another file cannot be taken over by a process that runs; a line each. */
  function problemsOf(next: ReadNamespaces): string[] {
    const problems: string[] = []
    for (const name of new Set([...live.fetched.names, ...next.fetched.names])) {
      const isStreamed = written(name).changes !== undefined || next.written(name).changes !== undefined
      if (!isStreamed || !differ(name, ['changes', 'refresh'], next)) continue
      problems.push(`namespaces.${name}: changes, and its refresh, take effect with a restart of fetchers and gateways`)
    }
    for (const name of known.keys()) {
      if (!next.all.get(name)) continue
      for (const field of ['source', 'per']) {
        if (written(name)[field] === next.written(name)[field]) continue
        problems.push(`namespaces.${name}.${field} cannot change while services run: give the namespace another name`)
      }
    }
    return problems
  }

  /**
   * @throws {Misconfigured} and changes nothing
   */
  function take(next: ReadNamespaces): NamespaceChanges {
    const problems = problemsOf(next)
    if (problems.length > 0) throw new Misconfigured(problems.join('\n'))
    const changes = changesTo(next)
    fill(next, name => !changes.authorize.has(name))
    return changes
  }

  const differ = (name: string, fields: string[], next: ReadNamespaces) =>
    fields.some(field => JSON.stringify(written(name)[field]) !== JSON.stringify(next.written(name)[field]))

  function changesTo(next: ReadNamespaces): NamespaceChanges {
    const kept = [...known.keys()].filter(name => next.all.get(name))
    const fetched = kept.filter(name => next.fetched.get(name))
    const isDecided = (of: ReadNamespaces['written'], name: string) => of(name).authorize !== undefined
    const becameDecided = (name: string) => isDecided(written, name) !== isDecided(next.written, name)
    return {
      request: new Set(fetched.filter(name => differ(name, requestFields, next))),
      times: new Map(
        fetched
          .filter(name => differ(name, timeFields, next))
          .map(name => [name, { beforeMs: freshMsOf(known.get(name)?.namespace as Namespace) }]),
      ),
      decided: new Set(kept.filter(becameDecided)),
      authorize: new Set(
        kept.filter(name => isDecided(written, name) && !becameDecided(name) && differ(name, authorizeFields, next)),
      ),
    }
  }

  return { ...live, problemsOf, take }
}

/** For how long a value can be shown before it is too old; with `refresh: 0` it never is. */
const freshMsOf = ({ refreshMs, waitMs = 0, timeoutMs }: Namespace) =>
  refreshMs === 0 ? Number.POSITIVE_INFINITY : refreshMs + waitMs + timeoutMs

function renew(namespace: AnyNamespace, read: AnyNamespace, keepsAuthorize: boolean) {
  for (const field of Object.keys(namespace)) if (!(field in read)) delete namespace[field as keyof AnyNamespace]
  const authorize = read.authorize && namespace.authorize && keepsAuthorize ? namespace.authorize : read.authorize
  Object.assign(namespace, read, authorize && { authorize })
}
