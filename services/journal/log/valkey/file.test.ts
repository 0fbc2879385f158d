import { beginFile } from './file.ts'

/** @param says to BGREWRITEAOF @param rewrites that it counts */
const begin = (says: () => unknown, known: string | null = 'before', rewrites = 0) =>
  beginFile(
    async ([command]: any) => {
      if (command === 'HGET') return (known && Buffer.from(known)) as any
      return command === 'INFO' ? `aof_rewrites:${rewrites}\r\n` : says()
    },
    ['now', 'primary'],
  )

const refuse = (message: string) => () => {
  throw new Error(message)
}

test('a server that was started since its log was written begins another file', async () => {
  const said = jest.fn(() => 'Background append only file rewriting started')
  expect(await begin(said)).toBeUndefined()
  expect(said).toHaveBeenCalledTimes(1)
  expect(await begin(refuse('ERR Background append only file rewriting already in progress'))).toBeUndefined()
})

test('so does one without a log: it may have been killed within the first batch', async () => {
  const said = jest.fn(() => 'Background append only file rewriting started')
  expect(await begin(said, null)).toBeUndefined()
  expect(said).toHaveBeenCalledTimes(1)
})

test.each([['now'], ['primary']])('one that wrote the log or was its replica goes on in the same one', async known => {
  expect(await begin(refuse('not to be asked'), known)).toBeUndefined()
})

test('while it writes a snapshot it is not used yet: it would go on in the same one', async () => {
  await expect(begin(() => 'Background append only file rewriting scheduled')).rejects.toThrow('after it')
})

test('one that could open no other file is named; one that only could not fork has begun it', async () => {
  const cannot = refuse("ERR Can't execute an AOF background rewriting. Please check the server logs")
  expect(await begin(cannot)).toMatch(/BGREWRITEAOF failed \(ERR Can't execute/)
  expect(await begin(cannot, 'before', 1)).toBeUndefined()
})

test('one that may not be told so is named', async () => {
  expect(await begin(refuse('NOPERM no permissions'))).toMatch(/BGREWRITEAOF failed \(NOPERM no permissions\)/)
})
