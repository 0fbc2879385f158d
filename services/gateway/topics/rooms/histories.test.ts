import { createHistoryReader } from './histories.ts'

function setUp(result: any) {
  const asked: unknown[] = []
  const histories = createHistoryReader({
    backbone: {
      history: async (...given) => {
        asked.push(given)
        return result
      },
    },
  })
  return { asked, histories }
}

test('a part above a seq, one below, or the newest is asked for', async () => {
  const { asked, histories } = setUp({ messages: [] })
  const deadline = { deadlineMs: 5_000, payer: 'a1' }
  await histories.read({ key: 'room:1', epoch: 'E', after: 7, limit: 5 }, 'a1')
  await histories.read({ key: 'room:1', before: 7, limit: 5 }, 'a1')
  expect(await histories.read({ key: 'room:1', limit: 5 }, 'a1')).toEqual({ messages: [] })
  expect(asked).toEqual([
    ['room:1', { epoch: 'E', after: 7, limit: 5 }, deadline],
    ['room:1', { epoch: undefined, before: 7, limit: 5 }, deadline],
    ['room:1', { epoch: undefined, before: Number.MAX_SAFE_INTEGER, limit: 5 }, deadline],
  ])
})

test('what failed is said in the words of the journal', async () => {
  const { histories } = setUp({ code: 'other_epoch', message: 'as the journal says it' })
  expect(await histories.read({ key: 'room:1', limit: 5 }, 'a1')).toEqual({
    code: 'other_epoch',
    message: 'as the journal says it',
  })
})
