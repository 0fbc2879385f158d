import { createInterests } from './wants.js'

/** @param {ReturnType<typeof createInterests>} interests */
const said = interests => [...interests.nextRequests('L')].map(({ link: _, ...request }) => request)

const create = () => createInterests({ held: key => (key === 'a:held' ? { version: 'v', ageMs: 5 } : undefined) })

test('what is wanted is said once, with what is held of it', () => {
  const interests = create()
  interests.want('a:1', { watch: true })
  interests.want('a:held', { watch: true })
  interests.want('a:held', { fetch: true })
  expect(interests.isAllSaid()).toBe(false)

  expect(said(interests)).toEqual([
    {
      type: 'watch',
      number: 1,
      wants: [
        { key: 'a:1', held: undefined },
        { key: 'a:held', held: { version: 'v', ageMs: 5 } },
      ],
    },
    { type: 'fetch', number: 2, wants: [{ key: 'a:held', held: { version: 'v', ageMs: 5 } }] },
  ])
  expect(interests.isAllSaid()).toBe(true)
  expect(said(interests)).toEqual([])
})

test('what is wanted no longer is taken back before anything new is said', () => {
  const interests = create()
  interests.want('a:1', { watch: true, fetch: true })
  said(interests)
  interests.want('a:2', { watch: true })
  interests.want('a:1', { watch: false, fetch: false })

  expect(said(interests)).toMatchObject([
    { type: 'unwatch', number: 3, keys: ['a:1'] },
    { type: 'cancel', number: 4, keys: ['a:1'] },
    { type: 'watch', number: 5, wants: [{ key: 'a:2' }] },
  ])
})

test('a fetch is over with an answer made after it was heard, a watch with none', () => {
  const interests = create()
  interests.want('a:1', { watch: true })
  said(interests)
  interests.want('a:1', { fetch: true })
  said(interests)

  expect(interests.take('a:1', 1)).toBe('state')
  expect(interests.take('a:1', 2)).toBe('fetched')
  expect(interests.take('a:1', 2)).toBe('state')
  interests.want('a:1', { fetch: false })
  expect(said(interests)).toEqual([])
})

test('an answer made before the present interest began belongs to an earlier one', () => {
  const interests = create()
  interests.want('a:1', { watch: true })
  said(interests)
  interests.want('a:1', { watch: false })
  expect(interests.take('a:1', 1)).toBe('earlier')
  said(interests)
  interests.want('a:1', { watch: true })
  expect(interests.take('a:1', 2)).toBe('earlier')
  said(interests)
  expect(interests.take('a:1', 2)).toBe('earlier')
  expect(interests.take('a:1', 3)).toBe('state')
})

test('what ends and begins again before its end is said is said again: somebody waits for an answer', () => {
  const interests = create()
  interests.want('a:1', { watch: true, fetch: true })
  said(interests)
  interests.want('a:1', { watch: false, fetch: false })
  interests.want('a:1', { watch: true })
  interests.want('a:1', { fetch: true })

  expect(interests.take('a:1', 2)).toBe('earlier')
  expect(said(interests)).toMatchObject([
    { type: 'watch', number: 3 },
    { type: 'fetch', number: 4 },
  ])
  expect(interests.take('a:1', 2)).toBe('earlier')
  expect(interests.take('a:1', 3)).toBe('state')
  expect(interests.take('a:1', 4)).toBe('fetched')
})

test('the same where a fetch goes on meanwhile, and the watch ends for good after all', () => {
  const interests = create()
  interests.want('a:1', { watch: true, fetch: true })
  said(interests)
  interests.want('a:1', { watch: false })
  interests.want('a:1', { watch: true })
  expect(interests.take('a:1', 2)).toBe('fetched')
  expect(said(interests)).toMatchObject([{ type: 'watch', number: 3 }])

  interests.want('a:1', { watch: false })
  interests.want('a:1', { watch: true })
  interests.want('a:1', { watch: false })
  expect(said(interests)).toMatchObject([{ type: 'unwatch', number: 4 }])
  interests.want('a:1', { watch: true })
  expect(said(interests)).toMatchObject([{ type: 'watch', number: 5 }])
  expect(said(interests)).toEqual([])
})

test('a refresh is confirmed by its number, and may be taken back before it is said', () => {
  const interests = create()
  /** @type {string[]} */
  const done = []
  interests.refresh(['a:1'], () => done.push('first'))
  interests.refresh(['a:2'], () => done.push('second'))()
  interests.confirm(100)
  expect(done).toEqual([])

  expect(said(interests)).toEqual([{ type: 'refresh', number: 1, keys: ['a:1'] }])
  interests.confirm(0)
  expect(done).toEqual([])
  interests.confirm(1)
  interests.confirm(1)
  expect(done).toEqual(['first'])
})

test('anew means from number 1, all that is still wanted, and no request of before', () => {
  const interests = create()
  interests.want('a:1', { watch: true })
  interests.want('a:2', { watch: true, fetch: true })
  interests.refresh(['a:3'], () => {})
  const requests = interests.nextRequests('L')
  requests.next()
  interests.want('a:1', { watch: false })

  interests.startAnew()

  expect(requests.next().done).toBe(true)
  expect(said(interests)).toMatchObject([
    { type: 'watch', number: 1, wants: [{ key: 'a:2' }] },
    { type: 'fetch', number: 2, wants: [{ key: 'a:2' }] },
    { type: 'refresh', number: 3, keys: ['a:3'] },
  ])
})
