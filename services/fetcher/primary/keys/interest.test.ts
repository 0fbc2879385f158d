import type { Entry } from './entry.ts'
import { createInterest, isKept, isWaitedFor, isWanted, newInterest } from './interest.ts'

const nothing = { version: undefined, askedAt: Number.NEGATIVE_INFINITY }
const waiting = { ready: false, needsFollowUp: false }

/** The fields of an entry that interest looks at. */
function newEntry() {
  const entry = { interest: newInterest() }
  return entry as unknown as Entry
}

function setup() {
  const timers: (() => void)[] = []
  const wheel = {
    set(atMs: number, run: () => void) {
      timers.push(run)
      return { tick: atMs, run }
    },
    cancel: () => {},
  }
  return { ...createInterest({ markDue: () => {}, wheel, now: () => 0 }), timers }
}

test('a link that is lost is found in what it wants, and in nothing of others', () => {
  const { watch, wait, entriesOf } = setup()
  const [mine, both, theirs] = [newEntry(), newEntry(), newEntry()]
  watch('a', mine, nothing)
  watch('a', both, nothing)
  wait('b', both, nothing, waiting)
  watch('b', theirs, nothing)
  expect([...entriesOf('a')]).toEqual([mine, both])
  expect([...entriesOf('b')]).toEqual([both, theirs])
  expect([...entriesOf('c')]).toEqual([])
})

test('what a link wants no more is forgotten; one that watches and waits must have left off both', () => {
  const { watch, wait, stopWaiting, unwatch, entriesOf, links } = setup()
  const entry = newEntry()
  watch('a', entry, nothing)
  wait('a', entry, nothing, waiting)
  expect(stopWaiting('a', entry)).toBe(true)
  expect(isWaitedFor(entry)).toBe(false)
  expect([...entriesOf('a')]).toEqual([entry])
  expect(unwatch('b', entry)).toBe(false)
  expect(unwatch('a', entry)).toBe(true)
  expect(stopWaiting('a', entry)).toBe(false)
  expect([...links()]).toEqual([])
})

test('a key whose last watcher left is kept until its moment is over, or until somebody watches it again', () => {
  const { watch, unwatch, linger, timers } = setup()
  const entry = newEntry()
  let ended = 0
  watch('a', entry, nothing)
  unwatch('a', entry)
  linger(entry, () => ended++)
  expect(isKept(entry)).toBe(true)
  timers[0]()
  expect([isKept(entry), ended]).toEqual([false, 1])
  linger(entry, () => ended++)
  watch('a', entry, nothing)
  expect(entry.interest.lingerTimer).toBeUndefined()
})

test('all interest in a key can be dropped at once, and each want of it is named', () => {
  const { watch, wait, drop, links } = setup()
  const entry = newEntry()
  watch('a', entry, nothing)
  watch('b', entry, nothing)
  wait('a', entry, nothing, waiting)
  expect(drop(entry)).toEqual([
    { link: 'a', want: 'watch' },
    { link: 'b', want: 'watch' },
    { link: 'a', want: 'get' },
  ])
  expect(isWanted(entry)).toBe(false)
  expect([...links()]).toEqual([])
})
