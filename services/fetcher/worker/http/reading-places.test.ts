import { realWorld } from '@keycast/service'
import { createReadingPlaces } from './reading-places.ts'

test('backends take turns, however many bodies one has', async () => {
  const places = createReadingPlaces(2, realWorld)
  const came: string[] = []
  for (const origin of ['a', 'a', 'a', 'a', 'a', 'b']) void places.take(origin, 60_000).then(() => came.push(origin))
  await Promise.resolve()
  expect(came).toEqual(['a', 'a'])
  for (let given = 0; given < 4; given++) {
    places.giveBack()
    await Promise.resolve()
  }
  expect(came).toEqual(['a', 'a', 'a', 'b', 'a', 'a'])
})

test('a body whose time is over has no place, and keeps none from the next', async () => {
  const timers: (() => void)[] = []
  const places = createReadingPlaces(1, {
    after(_, run) {
      timers.push(run)
      return () => {}
    },
  })
  await places.take('a', 1)
  const [late, next] = [places.take('a', 1), places.take('a', 1)]
  timers[0]()
  expect(await late).toBe(false)
  places.giveBack()
  expect(await next).toBe(true)
  places.giveBack()
  expect(await places.take('a', 1)).toBe(true)
})
