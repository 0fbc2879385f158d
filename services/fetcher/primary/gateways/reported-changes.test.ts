import { REFRESHES_REMEMBERED_MS } from '@keycast/backbone'
import { createReportedChanges } from './reported-changes.ts'

const START_MS = 1_000_000

function setup(options?: { max?: number }) {
  let at = START_MS
  const changes = createReportedChanges({ now: () => at, ...options })
  return {
    ...changes,
    pass(ms: number) {
      at += ms
    },
  }
}

test('a key may have changed since a time before it was said to have', () => {
  const { add, mayBeSince, pass } = setup()
  pass(5_000)
  add('doc:1')

  expect(mayBeSince('doc:1', START_MS + 4_999)).toBe(true)
  expect(mayBeSince('doc:1', START_MS + 5_001)).toBe(false)
  expect(mayBeSince('doc:2', START_MS + 4_999)).toBe(false)
})

test('a node that just started hears of late changes alone: any key may have changed before', () => {
  const { mayBeSince } = setup()

  // A gateway forgets after that time, and needs up to 10 s to connect.
  const knownSinceMs = START_MS - REFRESHES_REMEMBERED_MS + 10_000
  expect(mayBeSince('doc:1', knownSinceMs)).toBe(true)
  expect(mayBeSince('doc:1', knownSinceMs + 1)).toBe(false)
})

test('where too many changed, any key may have changed while the forgotten ones did', () => {
  const { add, mayBeSince, pass } = setup({ max: 2 })
  for (const key of ['doc:1', 'doc:2', 'doc:1', 'doc:3', 'doc:4']) {
    pass(1_000)
    add(key)
  }

  // Last reports: doc:1 at 3,000, doc:2 at 2,000. Both are forgotten.
  expect(mayBeSince('doc:9', START_MS + 3_000)).toBe(true)
  expect(mayBeSince('doc:9', START_MS + 3_001)).toBe(false)
  expect(mayBeSince('doc:3', START_MS + 3_500)).toBe(true)
})
