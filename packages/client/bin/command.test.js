import { connect } from '../keycast.js'
import { createWorld, welcome } from '../test-support.js'
import { createFakeKeycast } from '../testing.js'
import { runCommand } from './command.js'
import { createPrinter } from './print.js'

const soon = () => new Promise(resolve => setImmediate(resolve))

/** @param {string} line of words @param {{ isTTY?: boolean, keycast?: import('../keycast.js').Keycast }} [options] */
function start(line, { isTTY = false, keycast } = {}) {
  const fake = createFakeKeycast()
  /** @type {string[]} */
  const opened = []
  const written = { out: '', err: '' }
  let interrupt = () => {}
  const world = {
    open: async (/** @type {string} */ url) => {
      opened.push(url)
      return keycast ?? fake.keycast
    },
    out: {
      isTTY,
      write(/** @type {string} */ text) {
        written.out += text
      },
    },
    err: {
      write(/** @type {string} */ text) {
        written.err += text
      },
    },
    onInterrupt: (/** @type {() => void} */ stop) => {
      interrupt = stop
    },
  }
  const ended = runCommand(line.split(' ').filter(Boolean), world)
  const lines = () => written.out.trimEnd().split('\n').filter(Boolean)
  return {
    fake,
    opened,
    written,
    ended,
    interrupt: () => interrupt(),
    lines,
    objects: () => lines().map(line => JSON.parse(line)),
  }
}

test('watch prints a JSON line for each change, until it is interrupted', async () => {
  const { fake, opened, ended, interrupt, objects, written } = start('watch a:1 a:2 --url ws://host/ws')
  await soon()
  fake.set('a:1', { n: 1 })
  await soon()
  fake.stale('a:1')
  await soon()
  fake.set('a:2', Uint8Array.of(0, 255))
  await soon()
  fake.fail('a:2', 'backend_error', { message: 'it broke', retryAfterMs: 500 })
  await soon()
  interrupt()
  expect(await ended).toBe(0)
  expect(opened).toEqual(['ws://host/ws'])
  expect(objects()).toMatchObject([
    { key: 'a:1', value: { n: 1 }, version: 'fake-1', stale: false },
    { key: 'a:1', value: { n: 1 }, stale: { code: 'backend_timeout' } },
    { key: 'a:2', value: { base64: 'AP8=' } },
    { key: 'a:2', error: { code: 'backend_error', message: 'it broke', retryAfterMs: 500 } },
  ])
  expect(written.err).toBe('')
})

test('watch ends when no key can be watched any more', async () => {
  const { fake, ended, objects } = start('watch a:1')
  await soon()
  fake.fail('a:1', 'unknown_namespace', { message: 'no such namespace' })
  expect(await ended).toBe(1)
  expect(objects()).toEqual([{ key: 'a:1', error: { code: 'unknown_namespace', message: 'no such namespace' } }])
})

const unauthenticated = { error: { code: 'unauthenticated', message: expect.any(String) } }

test('watch ends where all keys are refused, and not before', async () => {
  const { fake, ended, objects } = start('watch a:1 a:2 a:3')
  await soon()
  fake.fail('a:1', 'unauthenticated')
  fake.fail('a:2', 'forbidden')
  await soon()
  fake.set('a:2', 2)
  fake.passTime(30_000)
  await soon()
  fake.fail('a:3', 'unknown_namespace')
  await soon()
  const before = objects().length
  fake.fail('a:2', 'forbidden')
  expect(await ended).toBe(1)
  expect(objects().slice(before)).toMatchObject([
    { key: 'a:2', error: { code: 'forbidden' } },
    { ...unauthenticated, key: 'a:1', repeats: expect.any(Number) },
  ])
})

test('a refusal that comes again is printed once, then counted when something else comes', async () => {
  const { fake, ended, interrupt, objects } = start('watch a:1 a:2')
  await soon()
  fake.set('a:2', 2)
  fake.fail('a:1', 'unauthenticated')
  for (let times = 0; times < 3; times++) {
    await soon()
    fake.passTime(30_000)
  }
  await soon()
  const about = () => objects().filter(({ key }) => key === 'a:1')
  expect(about()).toMatchObject([unauthenticated])
  fake.set('a:1', 1)
  fake.passTime(30_000)
  await soon()
  expect(about()).toMatchObject([unauthenticated, { ...unauthenticated, repeats: 3 }, { value: 1 }])
  interrupt()
  expect(await ended).toBe(0)
})

test('on a terminal it prints for people, and no stranger’s control characters', async () => {
  const { fake, ended, interrupt, lines } = start('watch a:1', { isTTY: true })
  await soon()
  fake.set('a:1', { text: '\u001b[2Jgone' })
  await soon()
  fake.fail('a:1', 'backend_error', { message: 'bad \u001b[2J', retryAfterMs: 1 })
  await soon()
  interrupt()
  expect(await ended).toBe(0)
  const [first, second] = lines()
  expect(first).toMatch(/^\d\d:\d\d:\d\d {2}a:1 {2}\{ text: /)
  expect(second).toContain('(backend_error: bad \\x1B[2J)')
  expect(`${first}${second}`).not.toContain('\u001b[2J')
})

test('JSON on a terminal commands it no more', async () => {
  const { fake, ended, interrupt, written, objects } = start('watch a:1 --json', { isTTY: true })
  await soon()
  fake.set('a:1', { text: '\u009b2J\u007f\u001bc' })
  await soon()
  interrupt()
  await ended
  expect(written.out).not.toMatch(/[^\n\P{Cc}]/u)
  expect(objects()[0].value.text).toBe('\u009b2J\u007f\u001bc')
})

test('get prints each value once', async () => {
  const { fake, ended, objects } = start('get a:1 a:2')
  fake.set('a:1', 7)
  fake.fail('a:2', 'not_found', { message: 'nothing there' })
  expect(await ended).toBe(1)
  expect(objects()).toEqual([
    { key: 'a:1', value: 7 },
    { key: 'a:2', error: { code: 'not_found', message: 'nothing there' } },
  ])
})

test('get gives up in the end', async () => {
  const { ended, objects } = start('get a:1 --timeout 0.001')
  expect(await ended).toBe(1)
  expect(objects()).toEqual([{ key: 'a:1', error: { code: 'timeout', message: 'no answer within 0.001 s' } }])
})

test('a get that gives up says what is wrong with the connection', async () => {
  const { fake, ended, objects } = start('get a:1 --timeout 0.001')
  fake.disconnect()
  expect(await ended).toBe(1)
  const message = 'no answer within 0.001 s: the connection was lost'
  expect(objects()).toEqual([{ key: 'a:1', error: { code: 'timeout', message } }])
})

test('the connection’s troubles go to the standard error', async () => {
  const { fake, ended, interrupt, written } = start('watch a:1')
  await soon()
  fake.disconnect()
  fake.reconnect()
  interrupt()
  await ended
  expect(written.err).toMatch(/^keycast: the connection was lost; tries again in \d\.\d s\nkeycast: connected again\n$/)
  expect(written.out).toBe('')
})

test('--help says how it is used', async () => {
  const { ended, written, opened } = start('--help')
  expect(await ended).toBe(0)
  expect(written.out).toContain('Usage: keycast watch KEY...')
  expect(opened).toEqual([])
})

test.each([
  ['', 'watch, get, publish'],
  ['dance a:1', 'watch, get, publish'],
  ['publish room:1', 'a key and the data'],
  ['members room:1 room:2', 'one key'],
  ['watch', 'which key to watch'],
  ['get a:1 --timeout soon', '--timeout soon'],
  ['get a:1 --timeout 1e9', '--timeout 1e9: must be a number above 0, and 2147483 at most'],
  ['watch room:1 --last 501', '--last 501: must be a whole number from 0 to 500'],
  ['history room:1 --limit 1000', '--limit 1000: must be a whole number from 1 to 500'],
  ['watch a:1 --loud', "Unknown option '--loud'"],
])('wrong use, "%s", is said', async (line, message) => {
  const { ended, written } = start(line)
  expect(await ended).toBe(2)
  expect(written.err).toContain(message)
})

test('watch prints the messages of a room, too', async () => {
  const { fake, ended, interrupt, objects } = start('watch room:1 --last 1')
  fake.publish('room:1', 'before')
  fake.publish('room:1', { n: 1 }, { from: 'ann' })
  await soon()
  fake.publish('room:1', { n: 2 })
  await soon()
  interrupt()
  expect(await ended).toBe(0)
  expect(objects()).toMatchObject([
    { key: 'room:1', position: { epoch: 'fake', seq: 2 }, from: 'ann', data: { n: 1 } },
    { key: 'room:1', position: { seq: 3 }, data: { n: 2 } },
  ])
})

test('publish says where the message is', async () => {
  const json = start('publish room:1 {"text":"hi"} --message-id abcdefghijklmnop')
  expect(await json.ended).toBe(0)
  expect(json.fake.messages('room:1')).toEqual([{ text: 'hi' }])
  expect(json.objects()).toMatchObject([
    { key: 'room:1', messageId: 'abcdefghijklmnop', position: { seq: 1 }, duplicate: false },
  ])
  const text = start('publish room:1 hi', { isTTY: true })
  expect(await text.ended).toBe(0)
  expect(text.fake.messages('room:1')).toEqual(['hi'])
  expect(text.lines()[0]).toMatch(/room:1 {2}#1$/)
})

test('a publish that is refused is a failure', async () => {
  const { fake, ended, objects } = start('publish room:1 1')
  fake.refusePublishes('room:1', 'forbidden')
  expect(await ended).toBe(1)
  expect(objects()).toMatchObject([{ key: 'room:1', error: { code: 'forbidden' } }])
})

test('a publish that failed names its message, to be sent again, and why the backend refused it', async () => {
  const { fake, ended, lines } = start('publish room:1 1 --message-id abcdefghijklmnop', { isTTY: true })
  fake.refusePublishes('room:1', 'forbidden')
  expect(await ended).toBe(1)
  expect(lines()[0]).toMatch(/forbidden: .* {2}\(--message-id abcdefghijklmnop\)$/)

  /** @type {string[]} */
  const written = []
  const out = { write: (/** @type {string} */ text) => written.push(text) }
  const error = Object.assign(new Error('no'), {
    code: 'message_refused',
    reason: 'spam',
    messageId: 'abcdefghijklmnop',
  })
  createPrinter({ out, err: out, isJson: true }).failure('room:1', error)
  expect(JSON.parse(written[0])).toEqual({
    key: 'room:1',
    messageId: 'abcdefghijklmnop',
    error: { code: 'message_refused', message: 'no', reason: 'spam' },
  })
})

test('on a terminal a message stands with the time it was kept, not that of printing', async () => {
  const now = jest.spyOn(Date, 'now').mockReturnValue(new Date(2026, 0, 2, 3, 4, 5).getTime())
  const { fake, ended, lines } = start('history room:1', { isTTY: true })
  fake.publish('room:1', 'long ago')
  now.mockReturnValue(new Date().setHours(1, 2, 3, 0))
  fake.publish('room:1', 'today')
  now.mockRestore()
  expect(await ended).toBe(0)
  expect(lines().map(line => line.split('  ')[0])).toEqual(['2026-01-02 03:04:05', '01:02:03'])
})

test('history prints the newest messages, members who is there', async () => {
  const history = start('history room:1 --limit 2', { isTTY: true })
  for (const n of [1, 2, 3]) history.fake.publish('room:1', n, { from: 'ann' })
  expect(await history.ended).toBe(0)
  expect(history.lines().map(line => line.split('  ').slice(2))).toEqual([
    ['#2', 'ann: \u001b[33m2\u001b[39m'],
    ['#3', 'ann: \u001b[33m3\u001b[39m'],
  ])
  const members = start('members room:1')
  members.fake.setMembers('room:1', ['Ann'])
  expect(await members.ended).toBe(0)
  expect(members.objects()).toEqual([{ key: 'room:1', count: 1, members: [{ id: 'Ann', name: 'Ann', tabs: 1 }] }])
})

test('members of a room where nobody is told of them is an error at once', async () => {
  const { environment, socket, settle, outs } = createWorld()
  const { ended, objects } = start('members news:1', { keycast: connect('ws://gateway/ws', { environment }) })
  await settle()
  socket().say(welcome())
  const [{ id }] = outs()
  const begun = { key: 'news:1', epoch: 'E', seq: 0, oldest: 1, recovered: false, count: 0 }
  socket().say({ type: 'subscribed', id, keys: [begun] })
  const message = 'nobody is told who is in this room'
  socket().say({ type: 'error', id, key: 'news:1', subscribed: true, code: 'forbidden', message })
  expect(await ended).toBe(1)
  expect(objects()).toMatchObject([{ key: 'news:1', error: { code: 'forbidden' } }])
})
