import { createPlaces } from './places.ts'

test('backends take turns, however many bodies one has', async () => {
  const places = createPlaces(2)
  const came: string[] = []
  for (const origin of ['a', 'a', 'a', 'a', 'a', 'b']) void places.take(origin).then(() => came.push(origin))
  await Promise.resolve()
  expect(came).toEqual(['a', 'a'])
  for (let given = 0; given < 4; given++) {
    places.giveBack()
    await Promise.resolve()
  }
  expect(came).toEqual(['a', 'a', 'a', 'b', 'a', 'a'])
})
