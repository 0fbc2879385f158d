import { realWorld } from '@keycast/service'
import type { Verified } from '../../access/tokens/tokens.ts'
import { createTickets, TICKET_MS } from './tickets.ts'

const of = (user: string, expiresAtMs = 60_000) => ({ user, expiresAtMs }) as Verified
const ann = of('ann')

function setup() {
  const world = { ...realWorld, nowMs: 0, now: () => world.nowMs, wallNow: () => world.nowMs }
  return { world, tickets: createTickets(world) }
}

test('a ticket stands for its token once', () => {
  const { tickets } = setup()
  const ticket = tickets.give(ann)
  expect(ticket).toMatch(/^[\w-]{22}$/)
  expect(tickets.take(ticket)).toBe(ann)
  expect(tickets.take(ticket)).toBeUndefined()
  expect(tickets.take('another')).toBeUndefined()
})

test('a ticket is good for no longer than its token', () => {
  const { world, tickets } = setup()
  const ticket = tickets.give(of('ann', 5_000))
  world.nowMs = 5_000
  expect(tickets.take(ticket)).toBeUndefined()
})

test('a ticket is good for 30 s', () => {
  const { world, tickets } = setup()
  const [one, other] = [tickets.give(ann), tickets.give(ann)]
  world.nowMs = TICKET_MS - 1
  expect(tickets.take(one)).toBe(ann)
  world.nowMs = TICKET_MS
  expect(tickets.take(other)).toBeUndefined()
})

test('of very many unused tickets the oldest are dropped', () => {
  const { tickets } = setup()
  const first = tickets.give(ann)
  const others = Array.from({ length: 10_000 }, (_, user) => tickets.give(of(`user ${user}`)))
  expect(tickets.take(first)).toBeUndefined()
  expect(tickets.take(others[0])).toEqual(of('user 0'))
})

test('who asks for very many has none of the others’ dropped, but the oldest own', () => {
  const { tickets } = setup()
  const others = tickets.give(of('bob'))
  const own = Array.from({ length: 10_001 }, () => tickets.give(ann))
  expect(tickets.take(others)).toEqual(of('bob'))
  expect(own.filter(ticket => tickets.take(ticket))).toEqual(own.slice(-100))
})
