// useValue and useRoom in React itself: mounted, unmounted, rendered on a server.
import { act, createElement as h, StrictMode } from 'react'
import { renderToString } from 'react-dom/server'
import TestRenderer from 'react-test-renderer'
import { KeycastProvider, useConnection, useRoom, useValue } from './react.js'
import { createFakeKeycast } from './testing.js'

Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true })

/** @param {{ id: string | undefined, from?: unknown }} props */
function Show({ id, from }) {
  const { value, stale, error } = useValue(id, from)
  return h('p', null, error ? error.code : `${JSON.stringify(value)}${stale ? ' (old)' : ''}`)
}

/** @param {ReturnType<typeof createFakeKeycast>} fake @param {import('react').ReactNode} children */
const within = (fake, children) => h(StrictMode, null, h(KeycastProvider, { keycast: fake.keycast }, children))

/** @param {any} tree */
const textsOf = tree => JSON.stringify(tree.toJSON()).match(/(?<="children":\[").*?(?="\])/g)

const reported = console.error
beforeAll(() => {
  // The package reports itself as deprecated at each use. There is no other renderer without a page.
  console.error = (...words) => String(words[0]).includes('react-test-renderer is deprecated') || reported(...words)
})
afterAll(() => {
  console.error = reported
})

test('a component shows the value and follows it; the subscription ends with it', async () => {
  const fake = createFakeKeycast()
  fake.set('a:1', 1)
  /** @type {any} */
  let tree
  await act(async () => {
    tree = TestRenderer.create(within(fake, [h(Show, { id: 'a:1', key: 1 }), h(Show, { id: 'a:1', key: 2 })]))
  })
  expect(textsOf(tree)).toEqual(['1', '1'])
  expect(fake.watched()).toEqual(['a:1'])
  await act(async () => fake.set('a:1', 2))
  expect(textsOf(tree)).toEqual(['2', '2'])
  await act(async () => fake.stale('a:1'))
  expect(textsOf(tree)).toEqual(['2 (old)', '2 (old)'])
  await act(async () => tree.unmount())
  expect(fake.watched()).toEqual([])
})

test('another key is another subscription', async () => {
  const fake = createFakeKeycast()
  fake.set('a:1', 'one')
  fake.fail('a:2', 'not_found', { retryAfterMs: 1_000 })
  /** @type {any} */
  let tree
  await act(async () => {
    tree = TestRenderer.create(within(fake, h(Show, { id: 'a:1' })))
  })
  await act(async () => tree.update(within(fake, h(Show, { id: 'a:2' }))))
  expect(textsOf(tree)).toEqual(['not_found'])
  expect(fake.watched()).toEqual(['a:2'])
})

test('what a server rendered is shown until the live value is there', async () => {
  const fake = createFakeKeycast()
  /** @type {any} */
  let tree
  await act(async () => {
    tree = TestRenderer.create(within(fake, h(Show, { id: 'a:1', from: 'served' })))
  })
  expect(textsOf(tree)?.[0]).toContain('served')
  await act(async () => fake.set('a:1', 'live'))
  expect(textsOf(tree)?.[0]).toContain('live')
})

/** @param {{ id: string }} props */
function Chat({ id }) {
  const { messages, pending, members, send } = useRoom(id, { presence: true })
  Object.assign(Chat, { send })
  const texts = [...messages, ...pending].map(({ data }) => data)
  return h('p', null, `${texts.join(' ')} (${members.count})`)
}

test('a component shows a room, who is there and what it sends; the subscription ends with it', async () => {
  const fake = createFakeKeycast()
  fake.publish('room:1', 'one')
  /** @type {any} */
  let tree
  await act(async () => {
    tree = TestRenderer.create(within(fake, h(Chat, { id: 'room:1' })))
  })
  expect(textsOf(tree)).toEqual(['one (0)'])
  await act(async () => fake.publish('room:1', 'two'))
  await act(async () => fake.setMembers('room:1', ['Ann']))
  expect(textsOf(tree)).toEqual(['one two (1)'])
  await act(async () => fake.disconnect())
  await act(async () => void (/** @type {any} */ (Chat).send('three')))
  expect(textsOf(tree)).toEqual(['one two three (1)'])
  expect(fake.messages('room:1')).toEqual(['one', 'two'])
  await act(async () => fake.reconnect())
  expect(textsOf(tree)?.[0]).toContain('one two three')
  expect(fake.messages('room:1')).toEqual(['one', 'two', 'three'])
  await act(async () => tree.unmount())
  expect(fake.watched()).toEqual([])
})

test('a component that is mounted again begins with the value that was there', async () => {
  const fake = createFakeKeycast()
  fake.set('a:1', 1)
  /** @type {unknown[]} */
  const seen = []
  function Seen() {
    const { value, health } = useValue('a:1')
    seen.push(health === 'loading' ? [value] : value)
    return null
  }
  const mount = () => act(async () => TestRenderer.create(within(fake, h(Seen))))
  /** @type {any} */
  const tree = await mount()
  await act(async () => tree.unmount())
  expect(fake.watched()).toEqual([])
  seen.length = 0
  await mount()
  expect(seen[0]).toEqual([1])
  expect(seen.at(-1)).toBe(1)
})

test('without a key nothing is subscribed to', async () => {
  const fake = createFakeKeycast()
  /** @type {any} */
  let tree
  await act(async () => {
    tree = TestRenderer.create(within(fake, h(Show, { id: undefined })))
  })
  expect(textsOf(tree)).toEqual(['undefined'])
  expect(fake.watched()).toEqual([])
})

const Connection = () => useConnection().name

test('a component follows the connection', async () => {
  const fake = createFakeKeycast()
  /** @type {any} */
  let tree
  await act(async () => {
    tree = TestRenderer.create(within(fake, h(Connection)))
  })
  expect(tree.toJSON()).toBe('open')
  await act(async () => fake.disconnect())
  expect(tree.toJSON()).toBe('waiting')
})

test('a component joins its room, and has the handle; what is sent after it is gone is not lost in silence', async () => {
  const fake = createFakeKeycast()
  /** @type {any} */
  let room
  const Joiner = () => {
    room = useRoom('room:1')
    return null
  }
  /** @type {any} */
  let tree
  await act(async () => {
    tree = TestRenderer.create(within(fake, h(Joiner)))
  })
  await act(async () => expect(await room.join('Ann')).toMatchObject({ name: 'Ann' }))
  expect([room.joinedAs, room.room.key]).toEqual(['Ann', 'room:1'])
  await act(async () => tree.unmount())
  await expect(room.send('lost')).rejects.toThrow('not mounted')
})

test('a server renders the value it was given, with no client at all', () => {
  const page = renderToString(
    h(KeycastProvider, null, [h(Show, { id: 'a:1', from: 7, key: 1 }), h(Show, { id: 'a:2', key: 2 })]),
  )
  expect(page).toBe('<p>7</p><p>undefined</p>')
})

test('a server renders a room as empty, with no client at all', () => {
  const page = renderToString(h(KeycastProvider, null, h(Chat, { id: 'room:1' })))
  expect(page).toBe('<p> (undefined)</p>')
})

test('a server renders the connection as not there yet', () => {
  expect(renderToString(h(KeycastProvider, null, h(Connection)))).toBe('connecting')
})
