import { createLinkKeys } from './interest.js'

/** As much of an entry as linkKeys look at. @param {string[]} watchers @param {string[]} [waiters] */
function entryOf(watchers, waiters = []) {
  const entry = {
    watchers: new Map(watchers.map(link => [link, {}])),
    waiters: new Map(waiters.map(link => [link, {}])),
  }
  return /** @type {import('./entry.js').Entry} */ (/** @type {unknown} */ (entry))
}

test('a link that is lost is answered with what it wanted, and with nothing of others', () => {
  const { add, take } = createLinkKeys()
  const [mine, both, theirs] = [entryOf(['a']), entryOf(['a', 'b']), entryOf(['b'])]
  add('a', mine)
  add('a', both)
  add('b', both)
  add('b', theirs)
  expect([...take('a')]).toEqual([mine, both])
  expect([...take('a')]).toEqual([])
  expect([...take('b')]).toEqual([both, theirs])
  expect([...take('c')]).toEqual([])
})

test('what a link wants no more is forgotten; one that watches and waits must have left off both', () => {
  const { add, review, take } = createLinkKeys()
  const entry = entryOf(['a'], ['a'])
  add('a', entry)
  entry.waiters.delete('a')
  review('a', entry)
  expect([...take('a')]).toEqual([entry])

  add('a', entry)
  entry.watchers.delete('a')
  review('a', entry)
  review('b', entry)
  expect([...take('a')]).toEqual([])
})
