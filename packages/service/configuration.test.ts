import { EventEmitter } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConfiguration } from './configuration.ts'
import { createMetrics } from './metrics/metrics.ts'
import { Misconfigured } from './misconfigured.ts'

const folder = mkdtempSync(join(tmpdir(), 'keycast-configuration-'))
afterAll(() => rmSync(folder, { recursive: true }))
let files = 0

/** A service that takes over every file but those that hold `bad`. @param early what comes before it has started */
function setup(text = 'first', early: (signals: EventEmitter) => void = () => {}) {
  const path = join(folder, `${++files}.yaml`)
  writeFileSync(path, text)
  const metrics = createMetrics({ service: 'test' })
  const signals = new EventEmitter()
  const taken: (string | undefined)[] = []
  const logged: [level: string, fields: any][] = []
  let tick = () => {}
  const note = (level: string) => (fields: unknown) => logged.push([level, fields])
  const configuration = createConfiguration({
    path,
    takeOver(text) {
      if (text === undefined || text.includes('bad')) throw new Misconfigured(`it is ${text}`)
      taken.push(text)
    },
    metrics,
    log: { info: note('info'), error: note('error') },
    every(_, given) {
      tick = given
      return () => {
        tick = () => {}
      }
    },
    signals,
  })
  early(signals)
  configuration.start()
  return {
    configuration,
    taken,
    logged,
    signals,
    write: (text: string) => writeFileSync(path, text),
    remove: () => rmSync(path),
    /** The file is looked at so many times. */
    async look(times = 1) {
      for (let looks = 0; looks < times; looks++) {
        tick()
        await configuration.looked()
      }
    },
    async value(name: string) {
      const lines = (await metrics.registry.metrics()).split('\n')
      return lines.filter(line => line.startsWith(`keycast_test_${name}`))
    },
  }
}

test('the file that a service starts with is in force, and looking at it again changes nothing', async () => {
  const { configuration, look, taken, value } = setup()
  await look(3)
  expect(configuration.text).toBe('first')
  expect(taken).toEqual([])
  expect(await value('config_info')).toEqual([`keycast_test_config_info{hash="${configuration.hash()}"} 1`])
  expect(await value('config_refused_total')).toEqual(['keycast_test_config_refused_total 0'])
})

test('another file is taken over once it was the same twice, and its hash is told', async () => {
  const { configuration, look, write, taken, logged, value } = setup()
  const before = configuration.hash()
  write('half of')
  await look()
  write('half of it and the other')
  await look()
  expect(taken).toEqual([])
  await look(3)
  expect(taken).toEqual(['half of it and the other'])
  expect(configuration.hash()).not.toBe(before)
  expect(logged).toMatchObject([['info', { config: configuration.hash() }]])
  expect(await value('config_info')).toEqual([`keycast_test_config_info{hash="${configuration.hash()}"} 1`])
})

test('a bad file changes nothing, and is told once, with the reason', async () => {
  const { configuration, look, write, logged, value } = setup()
  const before = configuration.hash()
  write('bad')
  await look(5)
  expect(configuration.hash()).toBe(before)
  expect(logged).toMatchObject([['error', { inForce: before, why: 'it is bad' }]])
  expect(await value('config_refused_total')).toEqual(['keycast_test_config_refused_total 1'])
})

test('after a bad file the one before is told and not taken over again, and a good one is taken over', async () => {
  const { configuration, look, write, taken, logged } = setup()
  write('bad')
  await look(2)
  write('first')
  await look(3)
  expect(logged).toMatchObject([
    ['error', {}],
    ['info', { config: configuration.hash() }],
  ])
  expect(taken).toEqual([])
  write('second')
  await look(2)
  expect(taken).toEqual(['second'])
})

test('a file that is gone is refused, and the one in force stays', async () => {
  const { look, remove, logged } = setup()
  remove()
  await look(2)
  expect(logged).toMatchObject([['error', { why: 'it is undefined' }]])
})

test('SIGHUP has the file taken over at once, also one that is the same: files that its variables name may not be', async () => {
  const { signals, write, taken, configuration } = setup()
  write('second')
  signals.emit('SIGHUP')
  signals.emit('SIGHUP')
  await configuration.looked()
  expect(taken).toEqual(['second', 'second'])
})

test('SIGHUP while the service starts has the file taken over once it has', async () => {
  const { taken, look } = setup('first', signals => signals.emit('SIGHUP'))
  await look(2)
  expect(taken).toEqual(['first'])
})

test('once stopped it looks at nothing, and SIGHUP ends no process that stops', async () => {
  const { configuration, signals, look, write, taken } = setup()
  configuration.stop()
  write('second')
  expect(signals.emit('SIGHUP')).toBe(true)
  await look(3)
  expect(taken).toEqual([])
})
