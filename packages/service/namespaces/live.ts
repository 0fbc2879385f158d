// The namespaces of a process while keycast.yaml changes under it. A namespace is one object for as long as it exists, whose
// fields become those of the new file: whatever holds it has its rules of now.
import { Misconfigured } from '../misconfigured.ts'
import type { JournalNamespace } from './journal-schema.ts'
import type { AllNamespaces, Authorize, Namespace, ReadNamespaces } from './namespaces.ts'
import type { PushedNamespace } from './pushed-schema.ts'
import { valuesAndRooms } from './values-and-rooms.ts'

export type LiveNamespaces = ReturnType<typeof createLiveNamespaces>

/** By what happened, the names of namespaces. */
export interface NamespaceChanges {
  added: ReadonlySet<string>
  removed: ReadonlySet<string>
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
  const values = new Map<string, Namespace>()
  const pushed = new Map<string, PushedNamespace>()
  const rooms = new Map<string, JournalNamespace>()
  let written = first.written
  fill(values, first)
  fill(pushed, first.pushed)
  fill(rooms, first.journal)

  const namesNow = () => [...values.keys(), ...pushed.keys(), ...rooms.keys()]

  /** Why another file cannot be taken over by a process that runs; a line each. */
  function problemsOf(next: ReadNamespaces): string[] {
    const problems: string[] = []
    for (const name of new Set([...values.keys(), ...next.names])) {
      const isStreamed = written(name).changes !== undefined || next.written(name).changes !== undefined
      if (!isStreamed || !differ(name, ['changes', 'refresh'], next)) continue
      problems.push(`namespaces.${name}: changes, and its refresh, take effect with a restart of fetchers and gateways`)
    }
    for (const name of namesNow()) {
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
    const keepsAuthorize = (name: string) => !changes.authorize.has(name)
    replace(values, next, keepsAuthorize)
    replace(pushed, next.pushed, keepsAuthorize)
    replace(rooms, next.journal, keepsAuthorize)
    written = next.written
    return changes
  }

  const differ = (name: string, fields: string[], next: ReadNamespaces) =>
    fields.some(field => JSON.stringify(written(name)[field]) !== JSON.stringify(next.written(name)[field]))

  function changesTo(next: ReadNamespaces): NamespaceChanges {
    const before = namesNow()
    const after = [...next.names, ...next.pushed.names, ...next.journal.names]
    const kept = before.filter(name => has(next, name))
    const isDecided = (of: ReadNamespaces['written'], name: string) => of(name).authorize !== undefined
    const becameDecided = (name: string) => isDecided(written, name) !== isDecided(next.written, name)
    return {
      added: new Set(after.filter(name => !before.includes(name))),
      removed: new Set(before.filter(name => !has(next, name))),
      request: new Set(kept.filter(name => values.has(name) && differ(name, requestFields, next))),
      times: new Map(
        kept
          .filter(name => values.has(name) && differ(name, timeFields, next))
          .map(name => [name, { beforeMs: freshMsOf(values.get(name) as Namespace) }]),
      ),
      decided: new Set(kept.filter(becameDecided)),
      authorize: new Set(
        kept.filter(name => isDecided(written, name) && !becameDecided(name) && differ(name, authorizeFields, next)),
      ),
    }
  }

  const live: AllNamespaces = {
    get: name => values.get(name),
    get names() {
      return [...values.keys()]
    },
    pushed: {
      get: name => pushed.get(name),
      get names() {
        return [...pushed.keys()]
      },
    },
    journal: {
      get: name => rooms.get(name),
      get names() {
        return [...rooms.keys()]
      },
    },
  }
  return Object.assign(live, { problemsOf, take })
}

/** For how long a value can be shown before it is too old; with `refresh: 0` it never is. */
const freshMsOf = ({ refreshMs, waitMs = 0, timeoutMs }: Namespace) =>
  refreshMs === 0 ? Number.POSITIVE_INFINITY : refreshMs + waitMs + timeoutMs

const has = (all: AllNamespaces, name: string) => valuesAndRooms(all).get(name) !== undefined

interface Named<N> {
  get: (name: string) => N | undefined
  readonly names: string[]
}

function fill<N>(named: Map<string, N>, { names, get }: Named<N>) {
  for (const name of names) named.set(name, get(name) as N)
}

/** @param keepsAuthorize whether what backends said still holds, where they were asked before */
function replace<N extends { authorize?: Authorize }>(
  named: Map<string, N>,
  { names, get }: Named<N>,
  keepsAuthorize: (name: string) => boolean,
) {
  for (const name of [...named.keys()]) if (!names.includes(name)) named.delete(name)
  for (const name of names) {
    const next = get(name) as N
    const known = named.get(name)
    if (!known) {
      named.set(name, next)
      continue
    }
    for (const field of Object.keys(known)) if (!(field in next)) delete known[field as keyof N]
    const authorize = next.authorize && known.authorize && keepsAuthorize(name) ? known.authorize : next.authorize
    Object.assign(known, next, authorize && { authorize })
  }
}
