// What the errors of Valkey mean.
import type { Session } from './connection.ts'

/** Valkey refuses with these before it changes anything. */
const UNAVAILABLE = /^(READONLY|NOREPLICAS|LOADING|MASTERDOWN|MISCONF|BUSY|NOAUTH|NOPERM|ERR Function not found)/

/** The server changed since it was checked. */
const CHANGED = /^(READONLY|NOAUTH|NOPERM|ERR Function not found)/

/** @param error of a call @throws {Error} where it may have been done */
export function refusalOf(error: Error): 'log_full' | 'journal_unavailable' {
  if (error.message.startsWith('OOM')) return 'log_full'
  if (UNAVAILABLE.test(error.message)) return 'journal_unavailable'
  throw error
}

/** A primary that lacks replicas, or could not write a snapshot: it takes no write, and can be read. */
export const isReadOnly = (error: Error) => /^(NOREPLICAS|MISCONF)/.test(error.message)

/** Another session checks the server anew. */
export function endIfChanged(session: Session, error: Error) {
  if (CHANGED.test(error.message)) session.end(error)
}

/** For what comes each second, also where nobody publishes. */
export async function noticing<T>(session: Session, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    endIfChanged(session, error as Error)
    throw error
  }
}
