// A world of two gateways and of the ways to them, which come and go; and of a page and its time: hidden, frozen, asleep.
// Its gateways are a model: values with numbers of their order, behind which a gateway may lag, and rooms.
import { createHash } from 'node:crypto'
import { createDelta } from 'fossil-delta'
import { createRandom } from '../../test/support/random.js'
import { createTarget } from './test-support.js'

export const KEYS = ['a:0', 'a:1', 'a:2']
export const ROOMS = ['room:0', 'room:1']

const HEARTBEAT_MS = 25_000

/** A gateway cuts a session that nothing comes from. */
const CUT_MS = 2 * HEARTBEAT_MS

/** An id is known as long as its message is there, and for so long. */
const REMEMBERED_MS = 300_000

const WAIT_MS = 20_000
const AUTH_MS = 5_000
const TOKEN_MS = 120_000
const RENEWAL_MS = 25_000

const pad = 'what was said until now. '.repeat(8)
const bytesOf = (/** @type {number} */ order) => Buffer.from(JSON.stringify({ order, pad }))
const versionOf = (/** @type {Buffer} */ bytes) =>
  createHash('sha256').update(bytes).digest().toString('base64url', 0, 16)
const limits = { messageBytes: 262_144, keysPerSession: 5_000, requestsPerSecond: 1_000 }

/** @param {number} seed @param {{ hasTokens?: boolean }} [options] */
export function createWaysWorld(seed, { hasTokens = false } = {}) {
  const { integer, pick } = createRandom(seed)
  /** What the client's clocks say: a monotonic one may stand still in a sleep. */
  const clock = { nowMs: 0, dateMs: 1_700_000_000_000 }
  /** The world's own time, in which gateways live. */
  let worldMs = 0
  /** @typedef {{ task: () => void, atMs: number, n: number }} Due */
  /** The client's timers, by its monotonic clock. @type {Set<Due>} */
  const timers = new Set()
  /** What comes over the network, and what gateways wait for, by the world's. @type {Set<Due>} */
  const events = new Set()
  let count = 0
  /** How long a way says nothing, opens nothing, or lets through. @type {{ socket: string, stream: string, waits: string }} */
  const ways = { socket: 'open', stream: 'open', waits: 'open' }
  const page = { isHidden: false, isOffline: false, isThrottled: false }
  /** What is open between the client and gateways: each ends by itself, or is ended. @type {Set<{ cut: (isSilent: boolean) => void }>} */
  const open = new Set()
  /** When a byte reached the client last. */
  let heardMs = 0
  /** Since when the page runs, seen and with a network. */
  let awakeMs = 0
  /** When values changed. @type {Map<string, number>} */
  const changes = new Map()

  const values = new Map(KEYS.map(key => [key, 1]))
  /** @typedef {{ seq: number, at: number, messageId: string, data: unknown }} Kept */
  /** @typedef {{ epoch: string, epochs: number, seq: number, oldest: number, messages: Kept[], all: (Kept & { epoch: string, isGone?: boolean, isDeleted?: boolean })[] }} Room */
  /** @type {Map<string, Room>} */
  const rooms = new Map(
    ROOMS.map(key => [
      key,
      { epoch: 'E0', epochs: 0, seq: 0, oldest: 1, messages: [], all: /** @type {Room['all']} */ ([]) },
    ]),
  )
  /** By room and id. @type {Map<string, Kept>} */
  const remembered = new Map()
  const roomOf = (/** @type {string} */ key) => /** @type {Room} */ (rooms.get(key))
  const sessions = new Set()

  /** @param {number} ms @param {() => void} task */
  function after(ms, task) {
    const due = { task, atMs: worldMs + ms, n: count++ }
    events.add(due)
    return due
  }
  const latency = () => pick([0, 1, 5, 30, 200])

  /** What is sent arrives in its order. @param {(item: any) => void} take */
  function createPipe(take) {
    let isCut = false
    let lastMs = 0
    return {
      /** @param {any} item */
      send(item) {
        if (isCut) return
        lastMs = Math.max(lastMs, worldMs + latency())
        after(lastMs - worldMs, () => isCut || take(item))
      },
      cut() {
        isCut = true
      },
    }
  }

  /** Two gateways, which share what is true, and see changes of values at times of their own. */
  const gateways = [0, 1].map(() => ({ seen: new Map(values), isUp: true }))

  /** @param {string} key */
  function change(key) {
    const order = (values.get(key) ?? 0) + 1
    values.set(key, order)
    changes.set(`${key} ${order}`, worldMs)
    for (const gateway of gateways) {
      after(pick([0, 10, 500, 4_000]), () => {
        if ((gateway.seen.get(key) ?? 0) >= order) return
        gateway.seen.set(key, order)
        for (const session of sessions) if (session.gateway === gateway) session.changed(key)
      })
    }
  }

  /** @param {string} key @param {string} messageId @param {unknown} data */
  function keep(key, messageId, data) {
    const room = roomOf(key)
    const there =
      room.messages.find(message => message.messageId === messageId) ?? remembered.get(`${key} ${messageId}`)
    if (there && (room.messages.includes(there) || worldMs - there.at < REMEMBERED_MS)) {
      return { ...there, duplicate: true }
    }
    const message = { seq: ++room.seq, at: worldMs, messageId, data }
    room.messages.push(message)
    room.all.push({ ...message, epoch: room.epoch })
    remembered.set(`${key} ${messageId}`, message)
    for (const session of sessions) session.published(key, message)
    return message
  }

  /**
   * A session at a gateway.
   *
   * @param {any} gateway @param {(message: any, bytes?: Buffer) => void} say @param {(code: number) => void} end
   * @param {boolean} hasDeltas
   */
  function createSession(gateway, say, end, hasDeltas) {
    /** By key: the order that the client has. @type {Map<string, number>} */
    const watched = new Map()
    /** @type {Set<string>} */
    const followed = new Set()
    let isOver = false
    let isIn = !hasTokens
    let heardAtMs = worldMs
    let expiresMs = Infinity

    /** @param {string} key @param {any} [of] */
    function tell(key, of) {
      const order = gateway.seen.get(key)
      const held = watched.get(key) ?? 0
      const [bytes, before] = [bytesOf(order), bytesOf(held)]
      const line = { key, version: versionOf(bytes), order, contentType: 'application/json' }
      if (!of) watched.set(key, order)
      if (hasDeltas && held && !of && integer(2)) {
        return say({ type: 'delta', from: versionOf(before), ...line }, Buffer.from(createDelta(before, bytes)))
      }
      say({ type: 'value', ...of, ...line }, bytes)
    }

    const session = {
      gateway,
      hasDeltas,
      /** @param {string} key */
      changed: key => {
        if (watched.has(key) && gateway.seen.get(key) > (watched.get(key) ?? 0)) tell(key)
      },
      /** @param {string} key @param {Kept} message */
      published: (key, message) => followed.has(key) && say({ type: 'message', key, ...message }),
      /** @param {string} key */
      begunAnew(key) {
        const { epoch, seq, oldest } = roomOf(key)
        if (followed.has(key)) say({ type: 'gap', key, epoch, seq, oldest, reason: 'epoch' })
      },
      /** @param {any} message */
      take(message) {
        if (isOver) return
        heardAtMs = worldMs
        const { type, id, key, keys = [] } = message
        if (type === 'auth') {
          isIn = true
          expiresMs = worldMs + TOKEN_MS
          return say({ type: 'authed', id, user: 'ann', expiresInMs: TOKEN_MS })
        }
        if (type === 'ping') return say({ type: 'pong', id, count: 1 })
        if (!isIn) return say({ type: 'error', id, code: 'unauthenticated', message: '' })
        if (integer(20) === 0) {
          return say({ type: 'error', id, key, code: 'rate_limited', message: '', retryAfterMs: integer(2_000) })
        }
        if (type === 'subscribe') subscribe(id, keys)
        else if (type === 'unsubscribe') {
          for (const each of keys) {
            watched.delete(each)
            followed.delete(each)
          }
          say({ type: 'ok', id })
        } else if (type === 'get') after(latency(), () => isOver || tell(key, { id }))
        else if (type === 'publish') publish(message)
        else if (type === 'history') {
          const room = roomOf(key)
          const { epoch = room.epoch, before = Infinity, after: from = 0, limit = 50 } = message
          if (epoch !== room.epoch) return say({ type: 'error', id, key, code: 'other_epoch', message: '' })
          const found = room.messages.filter(({ seq }) => seq < before && seq > from)
          const part = message.after === undefined ? found.slice(-limit) : found.slice(0, limit)
          say({
            ...{ type, id, key, epoch: room.epoch, oldest: room.oldest, newest: room.seq },
            ...{ messages: part, more: part.length < found.length },
          })
        } else if (type === 'join') say({ type: 'joined', id, key, name: message.name, claim: message.claim })
        else say({ type: 'ok', id })
      },
      end() {
        isOver = true
        sessions.delete(session)
      },
    }

    /** @param {any} message */
    function publish({ id, key, messageId, data }) {
      const dice = integer(12)
      if (dice === 0) return say({ type: 'error', id, key, code: 'publish_unknown', message: '', subscribed: true })
      after(latency(), () => {
        const { seq, at, duplicate } = /** @type {any} */ (keep(key, messageId, data))
        const { epoch } = roomOf(key)
        if (isOver) return
        if (dice === 1) return say({ type: 'error', id, key, code: 'publish_unknown', message: '', subscribed: true })
        say({ type: 'published', id, key, epoch, seq, at, duplicate })
      })
    }

    /** @param {any} id @param {any[]} keys */
    function subscribe(id, keys) {
      const entries = keys.map(entry => (typeof entry === 'string' ? { key: entry } : entry))
      const ofValues = entries.filter(({ key }) => values.has(key))
      if (ofValues.length > 0) say({ type: 'subscribed', id, keys: ofValues.map(({ key }) => ({ key })) })
      for (const { key, version, order = 0, after: place, last = 0 } of entries) {
        if (values.has(key)) {
          watched.set(key, 0)
          // One that lags behind asks first, and sends nothing older.
          const ms = gateway.seen.get(key) < order ? pick([50, 3_000]) : 0
          if (ms > 0) gateway.seen.set(key, values.get(key))
          after(ms, () => {
            if (isOver || !watched.has(key)) return
            const seen = gateway.seen.get(key)
            if (version !== versionOf(bytesOf(seen))) return tell(key)
            watched.set(key, seen)
            say({ type: 'current', key, version, order: seen })
          })
          continue
        }
        followed.delete(key)
        after(latency(), () => {
          if (isOver) return
          const { epoch, seq, oldest, messages } = roomOf(key)
          const recovered = place?.epoch === epoch && place.seq <= seq && place.seq >= oldest - 1
          const found = place ? (recovered ? messages.filter(each => each.seq > place.seq) : []) : messages.slice(-last)
          const given = place || last ? found : []
          say({ type: 'subscribed', id, keys: [{ key, epoch, seq, oldest, recovered, count: given.length }] })
          for (const message of given) say({ type: 'message', key, ...message })
          followed.add(key)
        })
      }
    }

    /** As long as it lasts. */
    function watch() {
      if (isOver) return
      if (!isIn && worldMs - heardAtMs >= AUTH_MS) return end(4001)
      if (worldMs >= expiresMs + RENEWAL_MS) return end(4001)
      if (worldMs >= expiresMs && isIn) {
        isIn = false
        say({ type: 'error', code: 'token_expired', message: '' })
      }
      after(1_000, watch)
    }
    after(1_000, watch)
    sessions.add(session)
    say({ type: 'welcome', session: hasDeltas ? 'socket' : 'stream', heartbeatMs: HEARTBEAT_MS, limits })
    return session
  }

  class ModelSocket {
    binaryType = ''
    /** @type {any} */
    onmessage = null
    /** @type {any} */
    onclose = null
    /** @type {any} */
    onerror = null
    /** @type {any} */
    #session
    #isOver = false
    #in
    #out
    #connection

    constructor() {
      const gateway = pick(gateways)
      const mode = gateway.isUp ? ways.socket : 'refused'
      this.#connection = { cut: (/** @type {boolean} */ isSilent) => this.#cut(isSilent) }
      open.add(this.#connection)
      this.#in = createPipe(item => {
        if (this.#isOver) return
        heardMs = clock.nowMs
        if ('code' in item) this.#closed(item)
        else this.onmessage?.(item)
      })
      this.#out = createPipe(text => this.#session?.take(JSON.parse(text)))
      if (mode === 'refused') this.#in.send({ code: 1006, reason: '' })
      if (mode !== 'open') return
      after(latency(), () => {
        if (this.#isOver) return
        this.#session = createSession(
          gateway,
          (message, bytes) => {
            const line = Buffer.from(`${JSON.stringify(message)}\n`)
            const frame = bytes ? Buffer.concat([line, bytes]) : undefined
            this.#in.send({ data: frame ? Uint8Array.from(frame).buffer : String(line) })
          },
          code => {
            this.#session.end()
            this.#in.send({ code, reason: '' })
          },
          true,
        )
      })
    }

    /** @param {boolean} isSilent */
    #cut(isSilent) {
      this.#in.cut()
      this.#out.cut()
      this.#session?.end()
      if (!isSilent) after(latency(), () => this.#closed({ code: 1006, reason: 'cut' }))
    }

    /** @param {any} event */
    #closed(event) {
      open.delete(this.#connection)
      if (this.#isOver) return
      this.#isOver = true
      this.#session?.end()
      this.onclose?.(event)
    }

    /** @param {string} text */
    send(text) {
      this.#out.send(text)
    }

    close() {
      open.delete(this.#connection)
      this.#isOver = true
      const session = this.#session
      after(latency(), () => session?.end())
    }
  }

  /** @param {number} status @param {Record<string, any>} headers @param {string | Buffer} [body] @param {any} [stream] */
  const responseOf = (status, headers, body = '', stream = {}) => ({
    ok: status >= 200 && status < 300,
    status,
    headers: { get: (/** @type {string} */ name) => headers[name] ?? null },
    text: async () => String(body),
    arrayBuffer: async () => Uint8Array.from(Buffer.from(body)).buffer,
    body: stream,
  })

  /** Event streams by their names. @type {Map<string, any>} */
  const streams = new Map()

  /** @param {string} address @param {any} init @returns {Promise<any>} */
  function fetch(address, { signal, body, headers = {} } = {}) {
    const { pathname, searchParams } = new URL(address)
    return new Promise((resolve, reject) => {
      const one = {
        /** @param {boolean} isSilent */
        cut(isSilent) {
          isOver = true
          if (!isSilent) after(latency(), () => finish(reject, new TypeError('cut')))
        },
      }
      let isOver = false
      let isFinished = false
      /** @param {(result: any) => void} how @param {any} result */
      function finish(how, result) {
        if (isFinished) return
        isFinished = true
        if (!result?.isLong) open.delete(one)
        heardMs = clock.nowMs
        how(result)
      }
      /** @param {number} ms @param {() => any} make */
      const answer = (ms, make) => after(ms + latency(), () => isOver || finish(resolve, make()))
      open.add(one)
      if (signal?.aborted) return finish(reject, new Error('aborted'))
      signal?.addEventListener('abort', () => {
        open.delete(one)
        isOver = true
        finish(reject, new Error('aborted'))
      })
      const gateway = pick(gateways)
      const isStream = pathname.startsWith('/v1/stream')
      const mode = gateway.isUp ? ways[isStream ? 'stream' : 'waits'] : 'refused'
      if (mode === 'silent') return
      if (mode === 'refused') return one.cut(false)
      if (mode === 'full') return answer(0, () => responseOf(503, {}, '{"code":"capacity","message":"full"}'))
      if (pathname === '/keycast.js') return answer(0, () => responseOf(200, { 'content-type': 'text/javascript' }))
      if (pathname === '/v1/stream') return answer(0, () => createStream(gateway, one, signal))
      if (pathname === '/v1/stream/send') {
        const stream = streams.get(headers['keycast-stream'])
        if (!stream) return answer(0, () => responseOf(404, {}, '{"code":"unknown_stream","message":""}'))
        return after(latency(), () => {
          // The answer may be lost, and not what was said.
          for (const line of String(body).split('\n')) if (line) stream.take(JSON.parse(line))
          answer(0, () => responseOf(204, {}))
        })
      }
      const [, kind, name] = /** @type {RegExpExecArray} */ (/^\/v1\/(values|wait)\/(.*)$/.exec(pathname))
      const key = decodeURIComponent(name)
      if (!values.has(key)) {
        return answer(0, () => responseOf(404, {}, '{"code":"unknown_namespace","message":"","retryAfterMs":1000}'))
      }
      if (integer(20) === 0) {
        return answer(0, () => responseOf(503, {}, '{"code":"fetcher_unavailable","message":"","retryAfterMs":500}'))
      }
      const given = () => {
        const order = gateway.seen.get(key) ?? 0
        const bytes = bytesOf(order)
        const version = versionOf(bytes)
        const head = { 'keycast-cursor': `${order}.1`, etag: `W/"${version}"`, 'content-type': 'application/json' }
        if (headers['if-none-match'] === `"${version}"`) return responseOf(304, head)
        return responseOf(200, head, bytes)
      }
      if (kind === 'values') return answer(0, given)
      const [shown] = String(searchParams.get('cursor')).split('.').map(Number)
      const untilMs = worldMs + WAIT_MS
      const look = () => {
        if (isOver) return
        const seen = gateway.seen.get(key) ?? 0
        if (seen > shown) answer(0, given)
        else if (seen < shown) {
          // It asks for what it has missed.
          gateway.seen.set(key, values.get(key) ?? 0)
          after(10, look)
        } else if (worldMs >= untilMs) answer(0, () => responseOf(204, { 'keycast-cursor': `${seen}.1` }))
        else after(100, look)
      }
      look()
    })
  }

  /** @param {any} gateway @param {any} one @param {any} signal */
  function createStream(gateway, one, signal) {
    const name = `stream ${count++}`
    const encoder = new TextEncoder()
    /** @type {any[]} */
    const chunks = []
    /** @type {any} */
    let waiting
    let isOver = false
    const give = () => {
      if (!waiting || chunks.length === 0) return
      const { resolve, reject } = waiting
      waiting = undefined
      const chunk = chunks.shift()
      if (chunk instanceof Error) reject(chunk)
      else resolve(chunk)
    }
    const pipe = createPipe(chunk => {
      heardMs = clock.nowMs
      chunks.push(chunk)
      give()
    })
    const write = (/** @type {string} */ text) => pipe.send({ done: false, value: encoder.encode(text) })
    /** @param {any} last */
    function finish(last) {
      if (isOver) return
      isOver = true
      streams.delete(name)
      session.end()
      open.delete(one)
      if (last)
        after(latency(), () => {
          chunks.push(last)
          give()
        })
    }
    const session = createSession(
      gateway,
      (message, bytes) => {
        const { contentType: _, ...head } = message
        const text = JSON.stringify(head)
        write(`id: x\ndata: ${bytes ? `${text.slice(0, -1)},"data":${bytes}}` : text}\n\n`)
      },
      code => {
        write(`event: close\ndata: ${JSON.stringify({ code, reason: '' })}\n\n`)
        finish(undefined)
      },
      false,
    )
    streams.set(name, session)
    one.cut = (/** @type {boolean} */ isSilent) => {
      pipe.cut()
      finish(isSilent ? undefined : new Error('cut'))
    }
    signal.addEventListener('abort', () => {
      pipe.cut()
      finish(undefined)
      chunks.push(new Error('aborted'))
      give()
    })
    const beat = () => {
      if (isOver) return
      write(':\n\n')
      after(HEARTBEAT_MS, beat)
    }
    after(HEARTBEAT_MS, beat)
    const read = () =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject }
        give()
      })
    return { ...responseOf(200, { 'keycast-stream': name }, '', { getReader: () => ({ read }) }), isLong: true }
  }

  const document = createTarget()
  const window = createTarget()

  const setTimeout = (/** @type {() => void} */ task, /** @type {number} */ ms) => {
    const due = { task, atMs: clock.nowMs + ms, n: count++ }
    timers.add(due)
    return due
  }
  const clearTimeout = (/** @type {any} */ timer) => timers.delete(timer)

  const settle = () => new Promise(resolve => setImmediate(resolve))

  /** @param {Set<Due>} set @param {number} untilMs @returns {Due | undefined} */
  function nextOf(set, untilMs) {
    let next
    for (const due of set) {
      if (due.atMs > untilMs) continue
      if (!next || due.atMs < next.atMs || (due.atMs === next.atMs && due.n < next.n)) next = due
    }
    return next
  }

  /** @param {Set<Due>} set @param {Due} due */
  async function run(set, due) {
    set.delete(due)
    due.task()
    await settle()
  }

  return {
    environment: {
      now: () => clock.nowMs,
      date: () => clock.dateMs,
      random: () => integer(1_000) / 1_000,
      setTimeout,
      clearTimeout,
      document: /** @type {any} */ (document),
      window: /** @type {any} */ (window),
      isOffline: () => page.isOffline,
      subtle: {
        digest: async (/** @type {any} */ _, /** @type {Uint8Array} */ bytes) =>
          Uint8Array.from(createHash('sha256').update(bytes).digest()).buffer,
      },
    },
    parts: { WebSocket: /** @type {any} */ (ModelSocket), fetch: /** @type {any} */ (fetch), setTimeout, clearTimeout },
    integer,
    pick,
    ways,
    page,
    values,
    rooms,
    gateways,
    sessions,
    open,
    timers,
    change,
    keep,
    settle,
    now: () => worldMs,
    /** Time in which the page ran, and nothing came. */
    quietMs: () => clock.nowMs - heardMs,
    /** Time counts from now on. */
    wakes() {
      heardMs = clock.nowMs
      awakeMs = worldMs
    },
    awakeMs: () => worldMs - awakeMs,
    /** When a value got that order. @param {string} key @param {number} order */
    changedMs: (key, order) => changes.get(`${key} ${order}`) ?? worldMs,
    listeners: () =>
      [document, window].flatMap(({ listeners }) => [...listeners.values()]).flatMap(each => [...each]).length,

    /** Lets time pass. @param {number} ms */
    async pass(ms) {
      const untilMs = worldMs + ms
      await settle()
      for (;;) {
        const clientUntilMs = clock.nowMs + untilMs - worldMs
        const timer = nextOf(timers, clientUntilMs)
        const event = nextOf(events, untilMs)
        const timerMs = timer ? worldMs + Math.max(0, timer.atMs - clock.nowMs) : Infinity
        // A browser runs the timers of hidden pages once a minute.
        const dueMs = page.isHidden && page.isThrottled ? Math.ceil(timerMs / 60_000) * 60_000 : timerMs
        const atMs = Math.min(dueMs, event?.atMs ?? Infinity)
        if (atMs > untilMs) break
        const passed = Math.max(0, atMs - worldMs)
        worldMs += passed
        clock.nowMs += passed
        clock.dateMs += passed
        if (timer && dueMs <= atMs) await run(timers, timer)
        else if (event) await run(events, event)
      }
      const rest = untilMs - worldMs
      worldMs = untilMs
      clock.nowMs += rest
      clock.dateMs += rest
    },

    /**
     * The page, or all of the computer, stands still. Then all timers that were due run before a byte is read.
     *
     * @param {number} ms @param {boolean} isMonotonic whether its clock went on meanwhile
     */
    async sleep(ms, isMonotonic) {
      // The network keeps the bytes that come meanwhile, as far as it lasts.
      if (ms > CUT_MS) for (const one of [...open]) one.cut(integer(2) === 0)
      worldMs += ms
      clock.dateMs += ms
      if (isMonotonic) clock.nowMs += ms
      heardMs = clock.nowMs
      awakeMs = worldMs
      for (const due of [...timers].sort((a, b) => a.atMs - b.atMs || a.n - b.n)) {
        if (due.atMs <= clock.nowMs && timers.has(due)) await run(timers, due)
      }
    },

    /** @param {number} ms */
    jump(ms) {
      clock.dateMs += ms
    },

    /** Ends what is open, at once or without a word. @param {boolean} isSilent */
    cut(isSilent) {
      for (const one of [...open]) one.cut(isSilent)
    },

    /** @param {string} key @param {number} count so many are left */
    trim(key, count) {
      const room = roomOf(key)
      room.messages = room.messages.slice(-count)
      room.oldest = room.messages[0]?.seq ?? room.seq + 1
      for (const each of room.all) each.isGone ||= each.epoch === room.epoch && each.seq < room.oldest
    },

    /** Deletes some of the messages. @param {string} key */
    delete(key) {
      const room = roomOf(key)
      const first = room.oldest + integer(4)
      const last = Math.min(first + integer(3), room.seq)
      if (first > last) return
      for (const each of room.all) {
        if (each.epoch !== room.epoch || each.seq < first || each.seq > last || 'deletes' in each) continue
        each.isDeleted = true
        const index = room.messages.findIndex(({ seq }) => seq === each.seq)
        const place = /** @type {any} */ ({ seq: each.seq, at: each.at, deleted: true, data: null })
        if (index >= 0) room.messages[index] = place
      }
      const message = /** @type {any} */ ({ seq: ++room.seq, at: worldMs, deletes: [[first, last]], data: null })
      room.messages.push(message)
      room.all.push({ ...message, epoch: room.epoch })
      for (const session of sessions) session.published(key, message)
    },

    /** Another history. @param {string} key */
    begin(key) {
      const room = roomOf(key)
      Object.assign(room, { epoch: `E${++room.epochs}`, seq: 0, oldest: 1, messages: [] })
      for (const each of [...remembered.keys()]) if (each.startsWith(`${key} `)) remembered.delete(each)
      for (const each of room.all) each.isGone = true
      for (const session of sessions) session.begunAnew(key)
    },

    /** @param {boolean} isHidden */
    show(isHidden) {
      page.isHidden = isHidden
      document.visibilityState = isHidden ? 'hidden' : 'visible'
      document.fire('visibilitychange')
    },

    /** @param {'online' | 'offline' | 'pagehide' | 'pageshow' | 'resume'} event */
    fire(event) {
      if (event.endsWith('line')) page.isOffline = event === 'offline'
      if (event === 'resume') document.fire(event)
      else window.fire(event)
    },
  }
}
