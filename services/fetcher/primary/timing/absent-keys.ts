// Keys that the backend never had. Anybody can make them up, so the backend is asked for each of them less and less often:
// for those who watch it, and for each account that gets it.
import { accountsOf, type Payer } from '@keycast/service'
import type { Entry } from '../keys/entry.ts'
import { isMissing } from '../keys/held.ts'
import { isKept, payersWaiting } from '../keys/interest.ts'

/** `periodMs`: of a key that is watched. `askers`: for whose gets the backend was asked, the latest last. */
export interface Absence {
  periodMs: number | undefined
  askers: Asker[]
}

/** `times`: how often in a row, up to `askedAt`. */
interface Asker {
  account: string
  times: number
  askedAt: number
}

/** The longest time between two requests for a key. A backend with a new value can call `POST /v1/refresh`. */
const WAIT_MS_MAX = 60_000

/** Of a namespace whose `maxAge` is 0, so that doubling it leads somewhere. */
const WAIT_MS_MIN = 100

/** Whoever has not asked for so long begins anew: the key may have been made since. */
const FORGOTTEN_MS = 2 * WAIT_MS_MAX

/**
 * Accounts that are remembered for a key. More than so many, in turn, have the backend asked each time; with fewer, one
 * could keep from all others for a minute that a key has been made.
 */
const ASKERS_MAX = 8

/** The backend was asked in vain. Called before those who wait are answered. @param entry that it never had */
export function noteAsked(entry: Entry, now: number) {
  const { refreshMs } = entry.namespace
  const absence = entry.absence ?? { periodMs: undefined, askers: [] }
  entry.absence = absence
  if (isKept(entry)) absence.periodMs = nextPeriodMs(absence, refreshMs)
  for (const payer of payersWaiting(entry)) noteAsker(absence, accountOf(payer), now)
}

/** @returns the time until the next request for those who watch the key */
function nextPeriodMs({ periodMs }: Absence, refreshMs: number) {
  return periodMs === undefined ? refreshMs : Math.max(refreshMs, Math.min(periodMs * 2, WAIT_MS_MAX))
}

function noteAsker({ askers }: Absence, account: string, now: number) {
  const place = askers.findIndex(asker => asker.account === account)
  const [before] = place < 0 ? [] : askers.splice(place, 1)
  const goesOn = before !== undefined && now - before.askedAt < FORGOTTEN_MS
  askers.push({ account, times: goesOn ? before.times + 1 : 1, askedAt: now })
  if (askers.length > ASKERS_MAX) askers.shift()
}

/**
 * How long a get for this payer is still answered from memory. After the first request that is `maxAge`, as for any
 * key; it doubles with each further one.
 *
 * @returns 0 where the backend is to be asked
 */
export function absentForMs(entry: Entry, payer: Payer | undefined, now: number): number {
  const { absence, held } = entry
  if (!absence || held.invalid || held.failure?.code !== 'not_found' || !isMissing(entry)) return 0
  const account = accountOf(payer)
  const asker = absence.askers.find(asker => asker.account === account)
  if (!asker || asker.times < 2) return 0
  const waitMs = Math.min(Math.max(held.maxAgeMs, WAIT_MS_MIN) * 2 ** (asker.times - 1), WAIT_MS_MAX)
  return Math.max(0, asker.askedAt + waitMs - now)
}

/** The key may exist now. */
export function forgetAbsence(entry: Entry) {
  entry.absence = undefined
}

/** Nobody watches the key any more: whoever comes may know that it has been made. */
export function forgetPeriod({ absence }: Entry) {
  if (absence) absence.periodMs = undefined
}

/** A user, or the network of whoever has no token: it has as many addresses as it likes. */
function accountOf(payer: Payer | undefined): string {
  if (payer === undefined) return ''
  const accounts = accountsOf(payer)
  const innermost = accounts[accounts.length - 1]
  return innermost.startsWith('u') ? innermost : (accounts.find(account => account !== 'g') ?? innermost)
}
