// The checker finds each kind of fault in histories that have it, and nothing in one that has none.
import { createChecker } from '../support/checker.ts'

const id = (seq: number) => `message-${seq}`
const placed = (seq: number, messageId = id(seq)) => ({ epoch: 'E', seq, messageId, data: messageId })

/** A run of five messages by one publisher, seen by two. */
function run(
  spoil: (checker: ReturnType<typeof createChecker>) => void = () => {},
  { sights = [1, 2, 3, 4, 5], history = [1, 2, 3, 4, 5] } = {},
) {
  const checker = createChecker()
  for (let seq = 1; seq <= 5; seq++) checker.acknowledged('ann', 'room:1', { ...placed(seq), duplicate: false })
  for (const viewer of ['bob', 'cem']) {
    checker.saw(viewer, 'room:1', { type: 'head', epoch: 'E', seq: 0, after: 0 })
    for (const seq of viewer === 'bob' ? sights : [1, 2, 3, 4, 5]) {
      checker.saw(viewer, 'room:1', { type: 'message', ...placed(seq) })
    }
  }
  checker.history('room:1', { epoch: 'E', oldest: 1, newest: 5, messages: history.map(seq => placed(seq)) })
  spoil(checker)
  return checker.problems()
}

test('nothing is wrong with a good run, with a repeat of what is there, and with a gap that is told', () => {
  expect(run()).toEqual([])
  expect(run(checker => checker.acknowledged('ann', 'room:1', { ...placed(2), duplicate: true }))).toEqual([])
  expect(
    run(checker => {
      checker.saw('bob', 'room:1', { type: 'gap', epoch: 'E', seq: 9 })
      checker.saw('bob', 'room:1', { type: 'message', ...placed(10) })
    }),
  ).toEqual([])
})

test.each([
  ['an acknowledged message that is not kept', () => run(() => {}, { history: [1, 2, 3, 5] }), 'loss: message-4'],
  ['a message that a viewer did not see', () => run(() => {}, { sights: [1, 2, 4, 5] }), 'loss: bob'],
  ['a message seen twice', () => run(() => {}, { sights: [1, 2, 2, 3, 4, 5] }), 'duplicate: bob'],
  ['messages seen in another order', () => run(() => {}, { sights: [1, 3, 2, 4, 5] }), 'disorder: bob'],
  [
    'a history with a hole that says it is whole',
    () => run(() => {}, { history: [1, 2, 4, 5] }),
    'part as whole: the history',
  ],
  [
    'one id in two places',
    () =>
      run(checker =>
        checker.history('room:1', {
          epoch: 'E',
          oldest: 1,
          newest: 6,
          messages: [...[1, 2, 3, 4, 5].map(seq => placed(seq)), placed(6, id(2))],
        }),
      ),
    'duplicate: message-2',
  ],
  [
    'two messages in one place',
    () =>
      run(
        checker =>
          checker.saw('dan', 'room:1', { type: 'head', epoch: 'E', seq: 0, after: 0 }) ??
          checker.saw('dan', 'room:1', { type: 'message', ...placed(1, 'another') }),
      ),
    'disorder: at room:1 E/1',
  ],
  [
    'publishes kept in another order than sent',
    () => run(checker => checker.acknowledged('ann', 'room:1', { ...placed(3), duplicate: false })),
    'disorder: ann sent',
  ],
  [
    'a resume that goes on behind what was missed',
    () => run(checker => checker.saw('bob', 'room:1', { type: 'head', epoch: 'E', seq: 9, after: 8 })),
    'part as whole: bob was at',
  ],
  [
    'a resume that ends before the head it was told',
    () => run(checker => checker.saw('bob', 'room:1', { type: 'head', epoch: 'E', seq: 7, after: 5 })),
    'part as whole: bob was told',
  ],
  [
    'a message of another history without a word',
    () => run(checker => checker.saw('bob', 'room:1', { type: 'message', ...placed(6), epoch: 'F' })),
    'disorder: bob saw room:1 F/6',
  ],
  [
    'a message before any head',
    () => run(checker => checker.saw('eve', 'room:1', { type: 'message', ...placed(1) })),
    'disorder: eve',
  ],
])('%s is found', (_, problemsOf, expected) => {
  expect(problemsOf().some(problem => problem.startsWith(expected))).toBe(true)
})
