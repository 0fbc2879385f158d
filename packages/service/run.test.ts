import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createContainment } from './containment.ts'
import { createLog } from './log.ts'
import { NamespacesError } from './namespaces/namespaces.ts'
import { runService } from './run.ts'

/** A process that only remembers: what was sent, and the codes it was told to exit with. */
const setup = ({ supervised = true } = {}) => {
  const lines: Record<string, any>[] = []
  const log = createLog({ name: 'keycast-test', destination: { write: line => lines.push(JSON.parse(line)) } })
  const sent: string[] = []
  const exits: number[] = []
  const emitter = new EventEmitter()
  const runtime = {
    on: emitter.on.bind(emitter),
    exit: (code: number) => {
      exits.push(code)
      emitter.emit('exit')
    },
    send: supervised ? (message: string) => sent.push(message) : undefined,
  }
  const service = { name: 'keycast-test', log, graceMs: 5_000, runtime, start: async () => {} }
  return {
    service,
    emitter,
    exited: once(emitter, 'exit'),
    exits,
    sent,
    lines,
    messages: () => lines.map(({ msg }) => msg),
  }
}

const step = (what: string, done: string[]) => [what, async () => void done.push(what)] as [string, () => Promise<void>]

test('a supervisor that listens is told when the service is ready, not before', async () => {
  const { service, sent } = setup()
  const start = async () => expect(sent).toEqual([])
  await runService({ ...service, start, stop: [] })
  expect(sent).toEqual(['ready'])
})

test('without a supervisor the service starts as well', async () => {
  const { service, exits } = setup({ supervised: false })
  await runService({ ...service, stop: [] })
  expect(exits).toEqual([])
})

test.each(['SIGTERM', 'SIGINT'])('%s runs the stop steps in order and exits with 0', async signal => {
  const { service, emitter, exited, exits } = setup()
  const done: string[] = []
  await runService({ ...service, stop: [step('listener', done), step('sessions', done), step('backbone', done)] })
  emitter.emit(signal)
  await exited
  expect(done).toEqual(['listener', 'sessions', 'backbone'])
  expect(exits).toEqual([0])
})

test('further signals neither skip nor repeat a step', async () => {
  const { service, emitter, exited, exits } = setup()
  const done: string[] = []
  const impatient = async () => {
    emitter.emit('SIGINT')
    emitter.emit('SIGTERM')
    done.push('first')
  }
  await runService({ ...service, stop: [['first', impatient], step('second', done)] })
  emitter.emit('SIGTERM')
  await exited
  expect(done).toEqual(['first', 'second'])
  expect(exits).toEqual([0])
})

test('a step that hangs is named after the grace period, and the exit code is 1', async () => {
  const { service, emitter, exited, exits, lines } = setup()
  const hang = () => new Promise(() => {})
  await runService({
    ...service,
    graceMs: 20,
    stop: [
      ['listener', async () => {}],
      ['sessions', hang],
    ],
  })
  emitter.emit('SIGTERM')
  await exited
  expect(exits).toEqual([1])
  expect(lines).toContainEqual(expect.objectContaining({ level: 'error', step: 'sessions' }))
})

test('a step that fails does not keep the next from running, and the exit code is 1', async () => {
  const { service, emitter, exited, exits, lines } = setup()
  const done: string[] = []
  const fail = async () => {
    throw new Error('no')
  }
  await runService({ ...service, stop: [['listener', fail], step('backbone', done)] })
  emitter.emit('SIGTERM')
  await exited
  expect(done).toEqual(['backbone'])
  expect(exits).toEqual([1])
  expect(lines).toContainEqual(expect.objectContaining({ level: 'error', step: 'listener' }))
})

test('a signal during the start stops the service after the start, without a ready message', async () => {
  const { service, emitter, exited, exits, sent } = setup()
  const done: string[] = []
  const start = async () => {
    emitter.emit('SIGTERM')
    await new Promise(setImmediate)
    done.push('started')
  }
  await runService({ ...service, start, stop: [step('stopped', done)] })
  await exited
  expect(done).toEqual(['started', 'stopped'])
  expect(exits).toEqual([0])
  expect(sent).toEqual([])
})

test('a service says in its own words why it could not start', async () => {
  const { service, exits, sent, messages } = setup()
  const start = async () => {
    throw new Error('listen EADDRINUSE')
  }
  const whyNot = (error: unknown) => `GATEWAY_PORT, because of ${(error as Error).message}`
  await runService({ ...service, start, stop: [], whyNot })
  expect(exits).toEqual([1])
  expect(sent).toEqual([])
  expect(messages()).toEqual(['keycast-test could not start: GATEWAY_PORT, because of listen EADDRINUSE'])
})

test("a start that fails for another reason logs the error's own message", async () => {
  const { service, exits, messages } = setup()
  const start = async () => {
    throw new Error('no space left')
  }
  await runService({ ...service, start, stop: [] })
  expect(exits).toEqual([1])
  expect(messages()).toEqual(['keycast-test could not start: no space left'])
})

test('wrong settings are logged without a stack and end the process with 2, because a restart would not mend them', async () => {
  const { service, exits, lines } = setup()
  const start = async () => {
    throw new NamespacesError('keycast.yaml', ['doc: url is missing'])
  }
  await runService({ ...service, start, stop: [] })
  expect(exits).toEqual([2])
  expect(lines).toMatchObject([{ level: 'fatal', msg: 'Invalid namespaces in keycast.yaml:\n  doc: url is missing' }])
  expect(lines[0]).not.toHaveProperty('err')
})

test.each(['uncaughtException', 'unhandledRejection'])('%s is logged and ends the process', async event => {
  const { service, emitter, exits, lines } = setup()
  await runService({ ...service, stop: [] })
  emitter.emit(event, new Error('a bug'))
  expect(exits).toEqual([1])
  expect(lines[0]).toMatchObject({ level: 'fatal', err: { message: 'a bug' } })
})

describe('a service with containment', () => {
  const contained = () => {
    const world = setup()
    const containment = createContainment({ now: () => 0, ends: ['session'], log: world.service.log })
    const done: string[] = []
    const stop = [step('clients', done), step('backbone', done)]
    return { ...world, containment, done, service: { ...world.service, containment, stop } }
  }

  test('stops in order and exits with 1 when it has to restart, so that its supervisor starts it anew', async () => {
    const { service, containment, done, exited, exits, lines } = contained()
    await runService(service)
    for (let error = 0; error < 10; error++) containment.caught('session', new Error('a bug'))
    await exited
    expect(done).toEqual(['clients', 'backbone'])
    expect(exits).toEqual([1])
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'fatal', why: '10 unforeseen errors within a minute' }),
    )
  })

  test.each(['uncaughtException', 'unhandledRejection'])('stops in order after an %s', async event => {
    const { service, emitter, done, exited, exits, lines } = contained()
    await runService(service)
    emitter.emit(event, new Error('a bug'))
    // Its consequences neither end the process sooner nor change the exit code.
    emitter.emit(event, new Error('another'))
    await exited
    expect(done).toEqual(['clients', 'backbone'])
    expect(exits).toEqual([1])
    expect(lines).toContainEqual(
      expect.objectContaining({ ended: 'process', err: expect.objectContaining({ message: 'a bug' }) }),
    )
  })

  test('ends at once after an uncaught error where its last writes could do harm', async () => {
    const { service, emitter, done, exits } = contained()
    await runService({ ...service, drains: false })
    emitter.emit('uncaughtException', new Error('a bug'))
    expect(exits).toEqual([1])
    expect(done).toEqual([])
  })

  test('ends at once after an uncaught error during its start', async () => {
    const { service, emitter, done, exits } = contained()
    const start = async () => void emitter.emit('uncaughtException', new Error('a bug'))
    await runService({ ...service, start })
    expect(exits).toEqual([1])
    expect(done).toEqual([])
  })

  test('that is being stopped exits with 1 after an uncaught error, and still stops in order', async () => {
    const { service, emitter, done, exited, exits } = contained()
    await runService({
      ...service,
      stop: [['bug', () => void emitter.emit('uncaughtException', new Error())], ...service.stop],
    })
    emitter.emit('SIGTERM')
    await exited
    expect(done).toEqual(['clients', 'backbone'])
    expect(exits).toEqual([1])
  })
})

test('a real process stops in order on a signal and loses no line of its log', async () => {
  const at = (file: string) => new URL(file, import.meta.url).href
  const program = `import { createLog } from '${at('./log.ts')}'
    import { runService } from '${at('./run.ts')}'
    const log = createLog({ name: 'child' })
    const timer = setInterval(() => {}, 1000)
    runService({ name: 'child', log, graceMs: 5000, start: async () => log.info('listening'),
      stop: [['a', async () => log.info('a')], ['timer', async () => clearInterval(timer)]] })`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program])
  let output = ''
  child.stdout.setEncoding('utf8').on('data', chunk => {
    output += chunk
    if (chunk.includes('listening')) child.kill('SIGTERM')
  })
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  const messages = output
    .trim()
    .split('\n')
    .map(line => JSON.parse(line).msg)
  expect(messages).toEqual(['listening', 'stopping', 'a', 'stopped'])
})
