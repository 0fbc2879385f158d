import { createRequests } from './requests.ts'

const create = () => createRequests({ position: () => undefined, now: () => 0 })

test('wants, notices and commands share one count', () => {
  const requests = create()
  requests.wants.want('a:1', { watch: true })
  requests.notices.add('news', () => {})
  const encoded = { head: 'do', parts: [] }
  requests.commands.add({ id: 'c1', key: 'k', encoded, deadlineAt: 1, wasSaid: false, isRepeated: false, done() {} })

  expect([...requests.nextRequests()]).toMatchObject([
    { number: 1, saying: { type: 'watch' } },
    { number: 2, saying: { type: 'notice' } },
    { number: 3, saying: { type: 'command' } },
  ])
  expect(requests.isAllSaid()).toBe(true)
})

test('anew means from number 1, and no request of before', () => {
  const requests = create()
  requests.wants.want('a:1', { watch: true })
  requests.wants.want('a:2', { watch: true, get: true })
  requests.notices.add('news', () => {})
  const before = requests.nextRequests()
  before.next()
  requests.wants.want('a:1', { watch: false })

  requests.startAnew()

  expect(before.next().done).toBe(true)
  expect([...requests.nextRequests()]).toMatchObject([
    { number: 1, saying: { type: 'watch', wants: [{ key: 'a:2' }] } },
    { number: 2, saying: { type: 'get', wants: [{ key: 'a:2' }] } },
    { number: 3, saying: { type: 'notice', notice: 'news' } },
  ])
})
