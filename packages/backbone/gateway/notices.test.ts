import { createNotices } from './notices.ts'

function setup() {
  let number = 0
  const notices = createNotices()
  const done: string[] = []
  return {
    ...notices,
    done,
    add: (name: string) => notices.add(name, () => done.push(name)),
    said() {
      const said = []
      while (!notices.isAllSaid()) {
        for (const { number: at, saying } of notices.nextRequests(() => ++number)) said.push(`${at} ${saying.notice}`)
      }
      return said
    },
    startAnew() {
      number = 0
      notices.startAnew()
    },
  }
}

test('a notice is done when its number was reached, and may be taken back before it is said', () => {
  const { add, said, confirm, done } = setup()
  add('first')
  add('second')()
  confirm(100)
  expect(done).toEqual([])

  expect(said()).toEqual(['1 first'])
  confirm(0)
  expect(done).toEqual([])
  confirm(1)
  confirm(1)
  expect(done).toEqual(['first'])
})

test('after a loss the notices that were not confirmed are said again', () => {
  const { add, said, confirm, done, startAnew } = setup()
  for (const name of ['first', 'second', 'third']) add(name)
  expect(said()).toEqual(['1 first', '2 second', '3 third'])
  confirm(1)
  startAnew()
  confirm(3)
  expect(done).toEqual(['first'])
  expect(said()).toEqual(['1 second', '2 third'])
})
