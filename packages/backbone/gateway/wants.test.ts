import { KEYS_PER_REQUEST_MAX } from '../wire/envelope.ts'
import { createWants, newWant, type Want, type WantOptions } from './wants.ts'

/** Wants, and the content of each request by its number. */
function create(events?: Partial<WantOptions<any>>) {
  let number = 0
  const wants = createWants({ position: key => (key === 'a:held' ? { version: 'v', ageMs: 5 } : undefined), ...events })
  const said = () => [...wants.nextRequests(() => ++number)].map(({ number, saying }) => ({ number, ...saying }))
  return { ...wants, said }
}

test('what is wanted is said once, with how far the gateway is', () => {
  const wants = create()
  wants.want('a:1', { watch: true })
  wants.want('a:held', { watch: true })
  wants.want('a:held', { get: true })
  expect(wants.isAllSaid()).toBe(false)

  expect(wants.said()).toEqual([
    {
      type: 'watch',
      number: 1,
      wants: [
        { key: 'a:1', position: undefined },
        { key: 'a:held', position: { version: 'v', ageMs: 5 } },
      ],
    },
    { type: 'get', number: 2, wants: [{ key: 'a:held', position: { version: 'v', ageMs: 5 } }] },
  ])
  expect(wants.isAllSaid()).toBe(true)
  expect(wants.said()).toEqual([])
})

test('what is wanted no longer is taken back before anything new is said', () => {
  const wants = create()
  wants.want('a:1', { watch: true, get: true })
  wants.said()
  wants.want('a:2', { watch: true })
  wants.want('a:1', { watch: false, get: false })

  expect(wants.said()).toMatchObject([
    { type: 'unwatch', number: 3, keys: ['a:1'], left: true },
    { type: 'cancelGet', number: 4, keys: ['a:1'] },
    { type: 'watch', number: 5, wants: [{ key: 'a:2' }] },
  ])
})

test('a get is over with an answer made after it was heard, a watch with none', () => {
  const wants = create()
  wants.want('a:1', { watch: true })
  wants.said()
  wants.want('a:1', { get: true })
  wants.said()

  expect(wants.take('a:1', 1)).toBe('before')
  expect(wants.take('a:1', 2)).toBe('got')
  expect(wants.take('a:1', 2)).toBe('state')
  wants.want('a:1', { get: false })
  expect(wants.said()).toEqual([])
})

test('an answer made before the present interest began belongs to an earlier one', () => {
  const wants = create()
  wants.want('a:1', { watch: true })
  wants.said()
  wants.want('a:1', { watch: false })
  expect(wants.take('a:1', 1)).toBe('earlier')
  wants.said()
  wants.want('a:1', { watch: true })
  expect(wants.take('a:1', 2)).toBe('earlier')
  wants.said()
  expect(wants.take('a:1', 2)).toBe('earlier')
  expect(wants.take('a:1', 3)).toBe('state')
})

test('what ends and begins again before its end is said is said again: somebody waits for an answer', () => {
  const wants = create()
  wants.want('a:1', { watch: true, get: true })
  wants.said()
  wants.want('a:1', { watch: false, get: false })
  wants.want('a:1', { watch: true })
  wants.want('a:1', { get: true })

  expect(wants.take('a:1', 2)).toBe('earlier')
  expect(wants.said()).toMatchObject([
    { type: 'watch', number: 3 },
    { type: 'get', number: 4 },
  ])
  expect(wants.take('a:1', 2)).toBe('earlier')
  expect(wants.take('a:1', 3)).toBe('before')
  expect(wants.take('a:1', 4)).toBe('got')
})

test('the same where a get goes on meanwhile, and the watch ends for good after all', () => {
  const wants = create()
  wants.want('a:1', { watch: true, get: true })
  wants.said()
  wants.want('a:1', { watch: false })
  wants.want('a:1', { watch: true })
  expect(wants.take('a:1', 2)).toBe('got')
  expect(wants.said()).toMatchObject([{ type: 'watch', number: 3 }])

  wants.want('a:1', { watch: false })
  wants.want('a:1', { watch: true })
  wants.want('a:1', { watch: false })
  expect(wants.said()).toMatchObject([{ type: 'unwatch', number: 4 }])
  wants.want('a:1', { watch: true })
  expect(wants.said()).toMatchObject([{ type: 'watch', number: 5 }])
  expect(wants.said()).toEqual([])
})

test('anew means from number 1, and all that is still wanted', () => {
  const wants = create()
  wants.want('a:1', { watch: true })
  wants.want('a:2', { watch: true, get: true })
  wants.said()
  wants.want('a:1', { watch: false })

  wants.startAnew()

  expect(wants.said()).toMatchObject([
    { type: 'watch', wants: [{ key: 'a:2' }] },
    { type: 'get', wants: [{ key: 'a:2' }] },
  ])
})

test('a watch says its payload, and says it again where it changed: answers under way are taken all the same', () => {
  let isPresent = false
  const wants = create({ payload: () => ({ isPresent }) })
  wants.want('a:1', { watch: true, get: true })
  expect(wants.said()).toMatchObject([
    { type: 'watch', wants: [{ key: 'a:1', payload: { isPresent: false } }] },
    { type: 'get', wants: [{ key: 'a:1' }] },
  ])

  isPresent = true
  wants.renewWatch('a:1')
  wants.renewWatch('a:nobody')
  expect(wants.said()).toEqual([
    { number: 3, type: 'watch', wants: [{ key: 'a:1', position: undefined, payload: { isPresent: true } }] },
  ])
  expect(wants.take('a:1', 1)).toBe('before')
})

test('payloads that would fill a message are spread over several, each numbered', () => {
  const wants = create({ payload: () => ({ token: 'x'.repeat(100_000) }) })
  for (let i = 0; i < 12; i++) wants.want(`a:${i}`, { watch: true })
  const said = wants.said()
  expect(said.map(each => [each.number, 'wants' in each && each.wants.length])).toEqual([
    [1, 6],
    [2, 6],
  ])
  expect(wants.said()).toEqual([])
})

test('a key that goes to another link is ended at the first, whose answers count no more', () => {
  const table = new Map<string, Want>()
  const [first, second] = [create({ table }), create({ table })]
  first.want('a:1', { watch: true })
  first.said()
  const before = table.get('a:1') as Want

  table.set('a:1', newWant('a:1'))
  first.drop(before)
  second.want('a:1', { watch: true })

  expect(first.said()).toEqual([{ type: 'unwatch', number: 2, keys: ['a:1'] }])
  expect(second.said()).toMatchObject([{ type: 'watch', wants: [{ key: 'a:1' }] }])
  expect(first.take('a:1', 9)).toBe('earlier')
  expect(second.take('a:1', 1)).toBe('state')
})

test('a node is told which keys nobody here wants any more, and which are only asked of another node', () => {
  const table = new Map<string, Want>()
  const wants = create({ table })
  for (const key of ['a:left', 'a:moved', 'a:gone']) wants.want(key, { watch: true })
  wants.said()
  const move = (key: string) => {
    const before = table.get(key) as Want
    table.set(key, newWant(key))
    wants.drop(before)
  }
  wants.want('a:left', { watch: false })
  move('a:moved')
  // Its viewer left before the node was told that it moves.
  move('a:gone')
  table.delete('a:gone')

  expect(wants.said()).toEqual([
    { type: 'unwatch', number: 2, keys: ['a:left', 'a:gone'], left: true },
    { type: 'unwatch', number: 3, keys: ['a:moved'] },
  ])
})

test('nothing is kept of a key once its end was said, or need not be', () => {
  const table = new Map<string, Want>()
  const wants = create({ table })
  for (const key of ['a:1', 'a:2', 'a:3', 'a:4']) wants.want(key, { watch: true })
  wants.want('a:1', { watch: false })
  wants.said()
  wants.want('a:2', { watch: false })
  wants.said()
  wants.want('a:3', { watch: false })
  wants.startAnew()

  expect([...table.keys()]).toEqual(['a:4'])
  expect(wants.said()).toMatchObject([{ type: 'watch', wants: [{ key: 'a:4' }] }])
})

describe('a key that ends while all are said again, after it was said and before its turn', () => {
  function saidAgain(count: number) {
    const wants = create()
    const keys = Array.from({ length: count }, (_, id) => `a:${id}`)
    for (const key of keys) wants.want(key, { watch: true })
    while (!wants.isAllSaid()) wants.said()
    wants.startAnew()
    wants.renewWatch('a:0')
    return { ...wants, keys }
  }

  test('takes no other key along', () => {
    const { want, said, startAnew, isAllSaid, keys } = saidAgain(KEYS_PER_REQUEST_MAX + 2)
    said()
    want('a:0', { watch: false })
    said()

    startAnew()
    const told = []
    while (!isAllSaid()) for (const { wants } of said() as any[]) told.push(...wants.map(({ key }: Want) => key))
    expect(told.sort()).toEqual(keys.slice(1).sort())
  })

  test('may be the last one', () => {
    const { want, said, isAllSaid, keys } = saidAgain(3 * KEYS_PER_REQUEST_MAX)
    for (let round = 0; round < 2; round++) said()
    for (const key of keys.slice(1)) want(key, { watch: false })
    for (let round = 0; round < 2; round++) said()
    want('a:0', { watch: false })
    said()
    expect(isAllSaid()).toBe(true)
  })
})

test('what ends while the requests before it are sent is not said', () => {
  const wants = create()
  wants.want('a:1', { watch: true })
  wants.want('a:2', { get: true })
  let number = 0
  const requests = wants.nextRequests(() => ++number)
  expect(requests.next().value).toMatchObject({ number: 1, saying: { type: 'watch' } })
  wants.want('a:2', { get: false })

  expect(requests.next().done).toBe(true)
  expect(wants.isAllSaid()).toBe(true)
})

test('any order of changes, losses and requests leaves the node with what is wanted, and nothing else kept', () => {
  let seed = 7
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647
    return seed % below
  }
  for (let run = 0; run < 60; run++) {
    // With so many more than one request has, all are said again in several, between which others change.
    const many = run < 50 ? 6 : 2 * KEYS_PER_REQUEST_MAX
    const table = new Map<string, Want>()
    const wants = create({ table })
    const watched = new Set<string>()
    let told = new Set<string>()
    const hear = () => {
      for (const request of wants.said() as any[]) {
        if (request.type === 'watch') for (const { key } of request.wants) told.add(key)
        if (request.type === 'unwatch') for (const key of request.keys) told.delete(key)
      }
    }
    for (let id = 6; id < many; id++) {
      wants.want(`a:${id}`, { watch: true })
      watched.add(`a:${id}`)
    }
    for (let step = 0; step < 10 * many; step++) {
      const key = `a:${random(many)}`
      switch (random(5)) {
        case 0:
        case 1:
          wants.want(key, { watch: true })
          watched.add(key)
          break
        case 2:
          if (watched.delete(key)) wants.want(key, { watch: false })
          break
        case 3:
          hear()
          break
        case 4:
          wants.startAnew()
          told = new Set()
      }
    }
    while (!wants.isAllSaid()) hear()
    expect([...told].sort()).toEqual([...watched].sort())
    expect([...table.keys()].sort()).toEqual([...watched].sort())
  }
})
