import {
  countOf,
  eachWatcher,
  newWatcher,
  noWatchers,
  OWED,
  QUIET,
  type Watchers,
  watcherIn,
  withoutWatcher,
  withWatcher,
} from './watchers.ts'

const watcherOf = (link: string, askedAt = 0) => newWatcher(link, { version: undefined, askedAt, quiet: false })

test.each([1, 4, 8, 9, 300])('%d links are found, counted, replaced and taken out', count => {
  const links = Array.from({ length: count }, (_, number) => `link-${number}`)
  let watchers: Watchers = noWatchers()
  for (const link of [...links, ...links]) watchers = withWatcher(watchers, watcherOf(link))
  watchers = withWatcher(watchers, watcherOf('link-0', 7))

  expect(countOf(watchers)).toBe(count)
  expect(Array.from(eachWatcher(watchers), ({ link }) => link).sort()).toEqual(links.sort())
  expect(watcherIn(watchers, 'link-0')?.askedAt).toBe(7)
  expect(watcherIn(watchers, 'other')).toBeUndefined()
  for (const link of links) watchers = withoutWatcher(watchers, link)
  expect([countOf(watchers), watcherIn(watchers, 'link-0')]).toEqual([0, undefined])
  expect(countOf(noWatchers())).toBe(0)
})

test('a new watcher is owed an answer', () => {
  expect(newWatcher('a', { version: 'v1', askedAt: 0, quiet: true }).state).toBe(OWED | QUIET)
})

test('the time of what its gateway holds is rounded up, and there is one before all others', () => {
  const times = [1.2, 3, Number.NEGATIVE_INFINITY].map(askedAt => watcherOf('a', askedAt).askedAt)
  expect(times).toEqual([2, 3, -(2 ** 30)])
})
