// Rooms with the client library and real processes: what was published is kept once, and everybody sees all of it in one
// order, whatever is killed.
import { connect, type Keycast, type Position, type RoomHandle } from '@keycast/client'
import { atEnd } from '../support/cleanup.ts'
import { eventually, within } from '../support/deadline.ts'
import { show } from '../support/figures.ts'
import { startRooms } from '../support/system.ts'
import { WebSocket } from '../support/websocket.ts'

/** For the tests that kill nothing, a namespace for each. */
let shared: Awaited<ReturnType<typeof startRooms>>

beforeAll(async () => {
  shared = await startRooms({
    namespaces: {
      short: { history: { messages: 20 } },
      small: { maxBytes: '1KiB' },
      news: { publish: 'server' },
      named: { members: 'named', names: 'unique' },
    },
    access: { anonymous: { read: ['*:**'], publish: ['*:**'], join: ['named:*'] } },
  })
})

/** A client whose next connection goes wherever `route` leads then, as through a load balancer. */
function startClient(route: { url: string }) {
  class Routed extends WebSocket {
    constructor(_: string, protocol: string) {
      super(route.url, protocol, { perMessageDeflate: false })
    }
  }
  const keycast = connect('ws://somewhere/ws', {
    WebSocket: Routed,
    // Waits that are short by chance: how long they are is tested elsewhere.
    environment: { random: () => Math.random() / 10 },
  })
  atEnd(() => keycast.close())
  return keycast
}

/** Follows a room, and notes where its order is broken. */
function follow(keycast: Keycast, key: string) {
  const room = keycast.room(key, { last: 1 })
  const seen: any[] = []
  const problems: string[] = []
  room.on('message', ({ position, data }) => {
    const last = seen.at(-1)?.position
    if (last && (last.epoch !== position.epoch || last.seq + 1 !== position.seq)) {
      problems.push(`${position.seq} after ${last.seq}`)
    }
    seen.push({ position, data })
  })
  room.on('gap', gap => problems.push(`a gap, ${gap.reason}, to ${gap.position.seq}`))
  return { room, seen, problems, live: () => eventually(() => room.state.live, 'the room being live') }
}

/** Publishes one message after the other until it is stopped. */
function startPublishing({ room }: ReturnType<typeof follow>, name: string) {
  const results: Promise<any>[] = []
  let isOver = false
  const over = (async () => {
    for (let n = 0; !isOver; n += 1) {
      const result = room.publish(`${name} ${n}`, { deadlineMs: 60_000 })
      results.push(result)
      await result.catch(() => {})
    }
  })()
  return {
    count: () => results.length,
    async stop() {
      isOver = true
      await within(over, 'the last message being settled')
      return Promise.all(results)
    },
  }
}

async function wholeHistory(room: RoomHandle) {
  const messages = []
  let before: Position | undefined
  for (;;) {
    const part = await room.history({ before, limit: 500 })
    messages.unshift(...part.messages)
    if (!part.more) return messages.map(({ data }) => data)
    before = part.messages[0].position
  }
}

test('gateways and the journal are killed under load: each message is kept once, and all see all of them in one order', async () => {
  const rooms = await startRooms({
    namespaces: { room: { history: { messages: 100_000 } } },
    gateways: 2,
  })
  const { journal } = rooms
  const gateways = [...rooms.gateways]
  const routes = gateways.map(({ url }) => ({ url }))
  const followed = [0, 1].map(n => follow(startClient(routes[n]), 'room:1'))
  for (const one of followed) await one.live()
  const publishing = followed.map((one, n) => startPublishing(one, `client-${n}`))

  /** @param count more messages, of each */
  async function more(count: number) {
    const targets = publishing.map(each => each.count() + count)
    await eventually(() => publishing.every((each, n) => each.count() >= targets[n]), `${count} more messages`)
  }

  await more(50)
  for (let round = 0; round < 3; round += 1) {
    await gateways[0].process.kill()
    gateways[0] = await rooms.startGateway()
    routes[0].url = gateways[0].url
    await more(50)
    journal.process().signal('SIGKILL')
    await journal.process().exited
    await journal.restart()
    await more(50)
  }
  const published = (await Promise.all(publishing.map(each => each.stop()))).flat()

  const late = follow(startClient(routes[1]), 'room:1')
  await late.live()
  const history = await wholeHistory(late.room)
  expect(new Set(history).size).toBe(history.length)
  expect(history.length).toBe(published.length)
  const newest = Math.max(...published.map(({ position }) => position.seq))
  for (const { room, seen, problems } of followed) {
    await eventually(() => room.position?.seq === newest, 'the last message being seen')
    expect(problems).toEqual([])
    expect(seen.map(({ data }) => data)).toEqual(history)
    expect(room.pending).toEqual([])
  }
  // Of each publisher the messages stand in the order of its calls.
  for (const name of ['client-0', 'client-1']) {
    const numbers = history.filter(text => text.startsWith(name)).map(text => Number(text.split(' ')[1]))
    expect(numbers).toEqual(numbers.map((_, n) => n))
  }
  const duplicates = published.filter(({ duplicate }) => duplicate).length
  show(`3 gateways and 3 journals killed: ${history.length} messages, ${duplicates} found to be kept already`)
})

test('a client that was away is given what it missed, or told that it cannot be', async () => {
  const [gateway] = shared.gateways
  const here = follow(startClient(gateway), 'short:1')
  await here.live()
  for (let n = 0; n < 4; n += 1) await here.room.publish(n)
  // Not that of the room: the answer to a publish may come before the message.
  const { position } = await here.room.publish(4)

  for (let n = 5; n < 10; n += 1) await here.room.publish(n)
  const back = startClient(gateway).room('short:1', { after: position })
  const items: any[] = []
  for await (const item of back) {
    items.push(item.type === 'message' ? item.data : item.reason)
    if (items.length === 5) break
  }
  expect(items).toEqual([5, 6, 7, 8, 9])

  for (let n = 10; n < 50; n += 1) await here.room.publish(n)
  // A gateway that followed the room holds more of it than the journal.
  const late = startClient(await shared.startGateway()).room('short:1', { after: position })
  for await (const item of late) {
    expect(item).toMatchObject({ type: 'gap', reason: 'trimmed', position: { seq: 50 } })
    break
  }
  const { messages } = await late.history({ limit: 3 })
  expect(messages.map(({ data }) => data)).toEqual([47, 48, 49])
})

test('what may not be done is refused, and the rest goes on', async () => {
  const keycast = startClient(shared.gateways[0])
  const room = keycast.room('small:1')
  await expect(room.publish('x'.repeat(2_000))).rejects.toMatchObject({ code: 'too_large' })
  await expect(room.publish('x'.repeat(2_000_000))).rejects.toMatchObject({ code: 'too_large' })
  await expect(keycast.room('news:1').publish('x')).rejects.toMatchObject({ code: 'forbidden' })
  const first = await room.publish('once', { messageId: 'abcdefghijklmnop' })
  expect(await room.publish('once', { messageId: 'abcdefghijklmnop' })).toEqual({ ...first, duplicate: true })
  await expect(room.publish('other', { messageId: 'abcdefghijklmnop' })).rejects.toMatchObject({ code: 'id_conflict' })
  await expect(keycast.room('nowhere:1').history()).rejects.toMatchObject({ code: 'unknown_namespace' })
  expect(room.state).toMatchObject({ live: true, error: undefined, pending: [] })
})

test('a name whose answer was lost with the connection is still had: the next session knows the client again', async () => {
  let joins = 0
  class Forgetful extends (WebSocket as any) {
    constructor(_: string, protocol: string) {
      super(shared.gateways[0].url, protocol)
    }
    set onmessage(listener: any) {
      super.onmessage = (event: any) => {
        const isJoined = String(event.data).includes('"joined"')
        if (isJoined) joins += 1
        if (isJoined && joins === 1) this.close(4000)
        else listener(event)
      }
    }
  }
  const keycast = connect('ws://somewhere/ws', {
    WebSocket: Forgetful as any,
    environment: { random: () => 0.1 },
  })
  atEnd(() => keycast.close())
  const room = keycast.room('named:1', { presence: true })
  expect(await within(room.join('Ann'), 'the join')).toMatchObject({ name: 'Ann' })
  expect(joins).toBe(2)
  await eventually(() => room.members.state.members?.length, 'the members')
  expect(room.members.state.members).toMatchObject([{ name: 'Ann', tabs: 1 }])
})
