import { setImmediate } from 'node:timers/promises'
import { createWindowRefills } from './window-refills.ts'

test('what clients are owed in a turn is paid to each at once when it ends', async () => {
  const paid: [string, number][] = []
  const owe = createWindowRefills<{ name: string; owed: number }>(({ name }, count) => paid.push([name, count]))
  const [ann, bob] = ['ann', 'bob'].map(name => ({ name, owed: 0 }))
  for (const client of [ann, bob, ann]) owe(client)
  expect(paid).toEqual([])
  await setImmediate()
  owe(bob)
  await setImmediate()
  expect(paid).toEqual([
    ['ann', 2],
    ['bob', 1],
    ['bob', 1],
  ])
})
