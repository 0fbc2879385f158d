import { createWriter } from './writer.ts'

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
