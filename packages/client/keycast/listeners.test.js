import { createListeners } from './listeners.js'

test('a new listener is told once, soon, how things stand; then of every change', async () => {
  /** @type {string | undefined} */
  let present = 'now'
  /** @type {string[]} */
  const heard = []
  const listeners = createListeners(() => present)
  const remove = listeners.add(state => heard.push(state))
  expect(heard).toEqual([])
  await Promise.resolve()
  expect(heard).toEqual(['now'])
  listeners.tell('then')
  remove()
  listeners.tell('later')
  expect(heard).toEqual(['now', 'then'])
  present = undefined
  listeners.add(state => heard.push(state))
  await Promise.resolve()
  expect(heard).toHaveLength(2)
})

test('a change that comes first takes the place of how things stood', async () => {
  /** @type {string[]} */
  const heard = []
  const listeners = createListeners(() => 'old')
  listeners.add(state => heard.push(state))
  listeners.tell('new')
  await Promise.resolve()
  expect(heard).toEqual(['new'])
})

test('a listener that was taken off before it was told hears nothing', async () => {
  /** @type {string[]} */
  const heard = []
  createListeners(() => 'now').add(state => heard.push(state))()
  await Promise.resolve()
  expect(heard).toEqual([])
})

test('a listener that throws is reported as its own fault, and stops nobody else', async () => {
  /** @type {string[]} */
  const heard = []
  const listeners = createListeners(() => /** @type {string | undefined} */ (undefined))
  listeners.add(() => {
    throw new Error('mine')
  })
  listeners.add(state => heard.push(state))
  const queue = globalThis.queueMicrotask
  /** @type {(() => void)[]} */
  const tasks = []
  globalThis.queueMicrotask = task => tasks.push(task)
  listeners.tell('x')
  globalThis.queueMicrotask = queue
  expect(heard).toEqual(['x'])
  expect(tasks[0]).toThrow('mine')
})

test('one listener may take off another while both are being told', () => {
  /** @type {string[]} */
  const heard = []
  const listeners = createListeners(() => /** @type {string | undefined} */ (undefined))
  listeners.add(() => remove())
  const remove = listeners.add(() => heard.push('second'))
  listeners.tell('x')
  expect(heard).toEqual([])
})
