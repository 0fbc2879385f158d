import { Pull, Push } from 'zeromq'
import { createWriter, receive } from './socket.ts'

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

test('messages leave in order, one send at a time, whatever the socket says to one of them', async () => {
  const log: string[] = []
  let sending = false
  const writer = createWriter({
    async send([part]) {
      expect(sending).toBe(false)
      sending = true
      await undefined
      sending = false
      if (part.toString() === 'b') throw new Error('EAGAIN')
      log.push(part.toString())
    },
  })

  await new Promise(resolve => {
    for (const text of ['a', 'b', 'c']) {
      writer.write([Buffer.from(text)], error => {
        if (error) log.push(`${text}: ${error.message}`)
        if (text === 'c') resolve(undefined)
      })
    }
  })

  expect(log).toEqual(['a', 'b: EAGAIN', 'c'])
})

test('it can be waited for until everything written has left', async () => {
  const left: string[] = []
  const writer = createWriter({
    async send([part]) {
      await new Promise(setImmediate)
      left.push(part.toString())
    },
  })
  for (const text of ['a', 'b']) writer.write([Buffer.from(text)], () => {})

  await writer.drained()

  expect(left).toEqual(['a', 'b'])
  await writer.drained()
})

test('short text is given to the socket as a string, which wakes nobody once it has left; bytes that are no text are not', async () => {
  const sent: (Buffer | string)[] = []
  const writer = createWriter({ send: async parts => void sent.push(...parts) })
  const text = Buffer.from('ü'.repeat(100))
  const noText = Buffer.alloc(200, 0xff)
  const long = Buffer.alloc(5_000, 'a')

  writer.write([Buffer.from('short'), text, noText, long], () => {})
  await writer.drained()

  expect(sent).toEqual([Buffer.from('short'), text.toString(), noText, long])
})

test('every part arrives byte by byte, also text with a byte order mark and NUL', async () => {
  const pull = new Pull({ linger: 0 })
  const push = new Push({ linger: 0 })
  await pull.bind('tcp://127.0.0.1:*')
  push.connect(String(pull.lastEndpoint))
  const parts = ['\uFEFFü€😀\0'.repeat(30), 'a'.repeat(5_000), 'b'].map(text => Buffer.from(text))
  parts.push(Buffer.alloc(300, 0xc3))

  createWriter(push).write(parts, () => {})

  expect(await pull.receive()).toEqual(parts)
  push.close()
  pull.close()
})
