import { createOutput } from './output.ts'

function setup({ format = 'pretty', colour = false }: { format?: 'pretty' | 'json'; colour?: boolean } = {}) {
  let text = ''
  const output = createOutput({
    write: part => {
      text += part
    },
    services: ['fetcher', 'gateway-2'],
    format,
    colour,
  })
  return { output, lines: () => text.split('\n').slice(0, -1) }
}

const line = (record: object) =>
  `${JSON.stringify({ level: 'info', time: '2026-01-01T00:00:00.000Z', pid: 1, hostname: 'h', name: 'n', ...record })}\n`

test('a log line is led by its service and made readable', () => {
  const { output, lines } = setup()
  output.stream()
  output.take('fetcher', 'out', line({ msg: 'listening', port: 7001 }))
  expect(lines()[0]).toMatch(/^fetcher {3}\| \[..:..:..\.000\] INFO: listening \{"port":7001\}$/)
})

test('lines that come in parts are put together, those of each service and stream apart', () => {
  const { output, lines } = setup()
  output.stream()
  const whole = line({ msg: 'whole' })
  output.take('fetcher', 'out', whole.slice(0, 20))
  output.take('gateway-2', 'out', 'plain\n')
  output.take('fetcher', 'err', 'error\n')
  output.take('fetcher', 'out', whole.slice(20))
  expect(lines()).toEqual(['gateway-2 | plain', 'fetcher   | error', expect.stringContaining('INFO: whole')])
})

test('each line of a stack is led', () => {
  const { output, lines } = setup()
  output.stream()
  output.take('fetcher', 'out', line({ level: 'fatal', msg: 'no', err: { type: 'Error', stack: 'Error: no\n  at x' } }))
  expect(lines().length).toBeGreaterThan(2)
  for (const each of lines()) expect(each).toMatch(/^fetcher {3}\| /)
})

test('while everything starts only our own lines are shown; then, in order, those held back', () => {
  const { output, lines } = setup()
  output.take('fetcher', 'out', 'one\n')
  output.say('starting gateway')
  expect(lines()).toEqual(['starting gateway'])
  output.stream()
  output.take('fetcher', 'out', 'two\n')
  expect(lines()).toEqual(['starting gateway', 'fetcher   | one', 'fetcher   | two'])
})

test('the last lines of a service are its own only', () => {
  const { output } = setup()
  for (let count = 1; count <= 100; count += 1) output.take('fetcher', 'out', `line ${count}\n`)
  output.take('gateway-2', 'out', 'other\n')
  const last = output.lastLines('fetcher').trimEnd().split('\n')
  expect(last).toHaveLength(15)
  expect(last.at(-1)).toBe('fetcher   | line 100')
})

test('json is passed on as it is, for a machine', () => {
  const { output, lines } = setup({ format: 'json', colour: true })
  output.stream()
  output.take('fetcher', 'out', line({ msg: 'x' }))
  expect(lines()).toEqual([line({ msg: 'x' }).trimEnd()])
})

test('output of processes that are not ours is not shown', () => {
  const { output, lines } = setup()
  output.stream()
  output.take('PM2', 'out', 'noise\n')
  expect(lines()).toEqual([])
})

test('colour is used only where asked for', () => {
  const { output, lines } = setup({ colour: true })
  output.stream()
  output.take('fetcher', 'out', 'x\n')
  expect(lines()[0]).toContain('\u001b[')
})
