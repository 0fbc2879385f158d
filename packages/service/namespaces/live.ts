// The namespaces of a process while keycast.yaml changes under it. A namespace is one object for as long as the process
// runs, whose fields become those of the new file: whatever holds it has its rules of now. One that is removed keeps its
// object, for keys of it are still held: without that they would be asked of the old backend when it comes back.
import { Misconfigured } from '../misconfigured.ts'
import type { JournalNamespace } from './journal-schema.ts'
import type { AllNamespaces, Authorize, Named, Namespace, ReadNamespaces } from './namespaces.ts'
import type { PushedNamespace } from './pushed-schema.ts'
import { valuesAndRooms } from './values-and-rooms.ts'

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
  const values = createNamed<Namespace>()
  const pushed = createNamed<PushedNamespace>()
  const rooms = createNamed<JournalNamespace>()
  /** As the namespaces were written last, those that are gone included. */
  const known = new Map<string, ReturnType<ReadNamespaces['written']>>()
  const written = (name: string) => known.get(name) ?? {}
  fill(first, () => false)

  function fill(next: ReadNamespaces, keepsAuthorize: (name: string) => boolean) {
    values.replace(next, keepsAuthorize)
    pushed.replace(next.pushed, keepsAuthorize)
    rooms.replace(next.journal, keepsAuthorize)
    for (const name of valuesAndRooms(next).names) known.set(name, next.written(name))
  }

  /** Why another file cannot be taken over by a process that runs; a line each. */
  function problemsOf(next: ReadNamespaces): string[] {
    const problems: string[] = []
    for (const name of new Set([...values.names, ...next.names])) {
      const isStreamed = written(name).changes !== undefined || next.written(name).changes !== undefined
      if (!isStreamed || !differ(name, ['changes', 'refresh'], next)) continue
      problems.push(`namespaces.${name}: changes, and its refresh, take effect with a restart of fetchers and gateways`)
    }
    for (const name of known.keys()) {
      if (!has(next, name)) continue
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
    const kept = [...known.keys()].filter(name => has(next, name))
    const isDecided = (of: ReadNamespaces['written'], name: string) => of(name).authorize !== undefined
    const becameDecided = (name: string) => isDecided(written, name) !== isDecided(next.written, name)
    return {
      request: new Set(kept.filter(name => next.get(name) && differ(name, requestFields, next))),
      times: new Map(
        kept
          .filter(name => next.get(name) && differ(name, timeFields, next))
          .map(name => [name, { beforeMs: freshMsOf(values.last(name) as Namespace) }]),
      ),
      decided: new Set(kept.filter(becameDecided)),
      authorize: new Set(
        kept.filter(name => isDecided(written, name) && !becameDecided(name) && differ(name, authorizeFields, next)),
      ),
    }
  }

  const live: AllNamespaces = Object.assign(values, { pushed, journal: rooms })
  return Object.assign(live, { problemsOf, take })
}

/** For how long a value can be shown before it is too old; with `refresh: 0` it never is. */
const freshMsOf = ({ refreshMs, waitMs = 0, timeoutMs }: Namespace) =>
  refreshMs === 0 ? Number.POSITIVE_INFINITY : refreshMs + waitMs + timeoutMs

const has = (all: AllNamespaces, name: string) => valuesAndRooms(all).get(name) !== undefined

/** The namespaces of a kind. */
function createNamed<N extends { authorize?: Authorize }>() {
  const named = new Map<string, N>()
  const gone = new Map<string, N>()
  const last = (name: string) => named.get(name) ?? gone.get(name)

  /** @param keepsAuthorize whether what backends said still holds, where they were asked before */
  function replace({ names, get }: Named<N>, keepsAuthorize: (name: string) => boolean) {
    for (const [name, known] of named) if (!names.includes(name)) gone.set(name, known)
    for (const name of gone.keys()) named.delete(name)
    for (const name of names) {
      const next = get(name) as N
      const known = last(name) ?? next
      gone.delete(name)
      named.set(name, known)
      for (const field of Object.keys(known)) if (!(field in next)) delete known[field as keyof N]
      const authorize = next.authorize && known.authorize && keepsAuthorize(name) ? known.authorize : next.authorize
      Object.assign(known, next, authorize && { authorize })
    }
  }

  return {
    replace,
    get: (name: string) => named.get(name),
    get names() {
      return [...named.keys()]
    },
    /** As it is, or was when it went. */
    last,
  }
}
