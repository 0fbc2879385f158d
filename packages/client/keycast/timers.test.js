import { createTimers } from './timers.js'

function setup() {
  /** @type {Set<{ task: () => void, ms: number }>} */
  const running = new Set()
  const timers = createTimers({
    setTimeout(task, ms) {
      const timer = { task, ms }
      running.add(timer)
      return timer
    },
    clearTimeout: timer => running.delete(timer),
  })
  const ring = () => {
    const [timer] = running
    running.delete(timer)
    timer.task()
  }
  /** @type {string[]} */
  const rung = []
  return { timers, running, ring, rung }
}

test('an alarm that is set again rings once, for the last time it was set', () => {
  const { timers, running, ring, rung } = setup()
  const alarm = timers.alarm()
  alarm.set(() => rung.push('first'), 10)
  alarm.set(() => rung.push('second'), 20)
  expect([...running].map(({ ms }) => ms)).toEqual([20])
  ring()
  expect(rung).toEqual(['second'])
  alarm.set(() => rung.push('third'), 10)
  alarm.clear()
  expect(running.size).toBe(0)
})

test('at rest nothing runs, and afterwards each alarm takes its whole time', () => {
  const { timers, running, ring, rung } = setup()
  const [one, two, three] = [timers.alarm(), timers.alarm(), timers.alarm()]
  one.set(() => rung.push('one'), 10)
  three.set(() => rung.push('three'), 30)
  timers.rest()
  two.set(() => rung.push('two'), 20)
  three.clear()
  expect(running.size).toBe(0)
  timers.go()
  timers.go()
  expect([...running].map(({ ms }) => ms)).toEqual([10, 20])
  ring()
  ring()
  expect(rung).toEqual(['one', 'two'])
  timers.rest()
  timers.go()
  expect(running.size).toBe(0)
})
