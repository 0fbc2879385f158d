// The calls of the backend and the operator, on the internal listener and under a bearer token. Each is in a file of its own.
import { addScope, type World } from '@keycast/service'
import type { FastifyInstance } from 'fastify'
import { addAccess } from '../access-http.ts'
import { addDeletions } from '../delete-http.ts'
import { addHandOver } from '../hand-over-http.ts'
import { addPublish } from '../publish-http.ts'
import { addRefresh } from '../refresh-http.ts'
import { addRevocations } from '../revoke-http.ts'
import { addState } from '../state-http.ts'
import type { ApiToken } from './api-tokens.ts'
import { createGuard, type Guard } from './guard.ts'

/** What each call needs, but for the guard. */
type DepsOf<Add extends (calls: FastifyInstance, deps: never) => unknown> = Omit<Parameters<Add>[1], 'guard'>

type Deps = Pick<World, 'wallNow'> &
  DepsOf<typeof addRefresh> &
  DepsOf<typeof addHandOver> &
  DepsOf<typeof addPublish> &
  DepsOf<typeof addDeletions> &
  DepsOf<typeof addRevocations> &
  DepsOf<typeof addAccess> &
  DepsOf<typeof addState> & {
    apiTokens: ApiToken[]
    /** Takes a line about what an operator did. */
    audit: (line: string) => void
  }

/** @param app of the internal listener */
export function addInternal(app: FastifyInstance, { apiTokens, audit, ...deps }: Deps) {
  const guard: Guard = createGuard({ tokens: apiTokens, audit, wallNow: deps.wallNow })
  addScope(app, 'calls', async calls => {
    const guarded = { ...deps, guard }
    addRefresh(calls, guarded)
    addHandOver(calls, guarded)
    addPublish(calls, guarded)
    addDeletions(calls, guarded)
    addRevocations(calls, guarded)
    addAccess(calls, guarded)
    addState(calls, guarded)
  })
}
