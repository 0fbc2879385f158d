import { createListeners } from './listeners.js'

function setup() {
  /** @type {string | undefined} */
  let present = 'now'
  const listeners = createListeners(() => present)
  return {
    listeners,
    /** @type {string[]} */
    heard: [],
    /** @param {string | undefined} state */
    become(state) {
      present = state
      if (state) listeners.tell(state)
    },
  }
}

test('a new listener is told once, soon, how things stand; then of every change', async () => {
  const { listeners, heard, become } = setup()
  const remove = listeners.add(state => heard.push(state))
  expect(heard).toEqual([])
  await Promise.resolve()
  expect(heard).toEqual(['now'])
  become('then')
  remove()
  become('later')
  expect(heard).toEqual(['now', 'then'])
  become(undefined)
  listeners.add(state => heard.push(state))
  await Promise.resolve()
  expect(heard).toHaveLength(2)
})

test('a change that comes first takes the place of how things stood', async () => {
  const { listeners, heard, become } = setup()
  listeners.add(state => heard.push(state))
  become('new')
  await Promise.resolve()
  expect(heard).toEqual(['new'])
})

test('a listener that knows how things stand is told of changes only', async () => {
  const { listeners, heard, become } = setup()
  listeners.add(state => heard.push(state), true)
  await Promise.resolve()
  expect(heard).toEqual([])
  become('new')
  expect(heard).toEqual(['new'])
})

test('where a listener changes things, those after it hear of the latest, once and not of an older state after it', () => {
  const { listeners, heard, become } = setup()
  listeners.add(state => {
    if (state === 'open') become('closed')
  })
  listeners.add(state => heard.push(state))
  become('open')
  expect(heard).toEqual(['closed'])
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
