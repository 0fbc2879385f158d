import { createReadSlots } from './read-slots.ts'

const reader = (n: number) => ({ key: `room:${n}`, takesSlot: false, isReading: false })

/** A reader's read is over, and so is its interest. */
const end = (slots: ReturnType<typeof createReadSlots>, of: ReturnType<typeof reader>) => {
  slots.ended(of)
  slots.release(of)
}

test('above the bound a reader waits, and is told when another has released its slot', () => {
  const told: string[] = []
  const slots = createReadSlots(key => told.push(key))
  const readers = Array.from({ length: 20 }, (_, n) => reader(n))
  expect(readers.map(each => slots.take(each))).toEqual([...Array(16).fill(true), ...Array(4).fill(false)])
  end(slots, readers[0])
  end(slots, readers[1])
  expect(told).toEqual(['room:16', 'room:17'])
  expect(slots.taken()).toBe(14)
})

test('a slot is taken and released once, and one that gave up waiting is not told', () => {
  const told: string[] = []
  const slots = createReadSlots(key => told.push(key))
  const readers = Array.from({ length: 17 }, (_, n) => reader(n))
  for (const each of readers) slots.take(each)
  expect(slots.take(readers[0])).toBe(false)
  slots.release(readers[16])
  end(slots, readers[0])
  slots.release(readers[0])
  expect(told).toEqual([])
  expect(slots.taken()).toBe(15)
})

test('those who read histories take turns', () => {
  const told: string[] = []
  const slots = createReadSlots(key => told.push(key))
  const readers = Array.from({ length: 16 }, (_, n) => reader(n))
  for (const each of readers) slots.take(each)
  for (let n = 0; n < 100; n++) slots.take({ ...reader(100 + n), payer: 'a1.u1' })
  slots.take({ ...reader(0), key: 'room:other', payer: 'a2.u2' })
  end(slots, readers[0])
  end(slots, readers[1])
  expect(told).toEqual(['room:100', 'room:other'])
})

test('rooms have turns as the networks of guests have, and not one among them all', () => {
  const told: string[] = []
  const slots = createReadSlots(key => told.push(key))
  const readers = Array.from({ length: 16 }, (_, n) => reader(n))
  for (const each of readers) slots.take(each)
  for (let n = 0; n < 100; n++)
    for (let guest = 0; guest < 32; guest++) slots.take({ ...reader(n), key: 'part', payer: `g.A${guest}` })
  for (let n = 0; n < 100; n++) slots.take(reader(1_000 + n))
  for (let n = 0; n < 200; n++) {
    const next = reader(n)
    slots.release(readers[0])
    slots.ended(readers[0])
    slots.take(next)
    readers[0] = next
  }
  expect(told.filter(key => key !== 'part').length).toBeGreaterThanOrEqual(64)
})

test('a slot stays taken until its read is over, though nobody wants the result any more', () => {
  const told: string[] = []
  const slots = createReadSlots(key => told.push(key))
  const readers = Array.from({ length: 17 }, (_, n) => reader(n))
  for (const each of readers) slots.take(each)
  slots.release(readers[0])
  expect([slots.taken(), told]).toEqual([16, []])
  slots.ended(readers[0])
  expect([slots.taken(), told]).toEqual([15, ['room:16']])
})

test('a reader that ends leaves the place of the next one of its key', () => {
  const told: string[] = []
  const slots = createReadSlots(key => told.push(key))
  const readers = Array.from({ length: 16 }, (_, n) => reader(n))
  for (const each of readers) slots.take(each)
  const next = { ...reader(0) }
  slots.release(readers[0])
  expect(slots.take(next)).toBe(false)
  slots.release(readers[0])
  end(slots, readers[1])
  expect(told).toEqual(['room:0'])
})
