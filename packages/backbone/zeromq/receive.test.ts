import { receive } from './receive.ts'

/** A socket that gives the messages of the script, then closes. */
function scripted(script: (string | Error)[]) {
  return {
    closed: false,
    async receive() {
      const next = script.shift()
      if (next === undefined) {
        this.closed = true
        throw again()
      }
      if (next instanceof Error) throw next
      return [Buffer.from(next)]
    },
  }
}

const again = () => Object.assign(new Error('Operation was not possible or timed out'), { code: 'EAGAIN' })

test('messages are handled in order until the socket is closed', async () => {
  const handled: string[] = []

  await receive(scripted(['a', 'b']), ([part]) => handled.push(part.toString()))

  expect(handled).toEqual(['a', 'b'])
})

test('a receive that finds nothing after all is tried again', async () => {
  const handled: string[] = []

  await receive(scripted([again(), 'a', again(), 'b']), ([part]) => handled.push(part.toString()))

  expect(handled).toEqual(['a', 'b'])
})

test('any other failure is for the caller', async () => {
  await expect(receive(scripted([new Error('EFAULT')]), () => {})).rejects.toThrow('EFAULT')
})

test('a backlog lets timers run', async () => {
  const script = Array.from({ length: 20 }, () => 'busy')
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)

  await receive(scripted(script), () => {
    const until = performance.now() + 5
    while (performance.now() < until);
  })
  clearInterval(timer)

  expect(ticks).toBeGreaterThan(5)
})
