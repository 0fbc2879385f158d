// An application that does anything with a client in a world of test-ways-world.js, and judges what it is shown: each
// message once and in order, or a gap that is true; no value older than one shown; nothing live that is not; and in the end
// all that is wanted.
import { createMessageList } from './keycast/rooms/message-list.js'
import { KEYS, ROOMS } from './test-ways-world.js'

/** A connection is found dead in this time while a page is seen: over a WebSocket or a stream, and over requests that wait. */
const FOUND_MS = 45_000
const FOUND_BY_WAITS_MS = 260_000

/**
 * @param {ReturnType<typeof import('./test-ways-world.js').createWaysWorld>} world
 * @param {any} keycast
 * @param {(problem: string) => void} fail
 * @param {string} [name] of the client
 */
export function createJudge(world, keycast, fail, name = '') {
  const { integer, pick, page, values, rooms } = world
  const roomOf = (/** @type {string} */ key) => /** @type {any} */ (rooms.get(key))

  /** @type {Map<string, { handle: any, shown: number }>} */
  const watched = new Map()
  /** @type {Set<{ key: string, handle: any, last: any, movedMs: number }>} */
  const followed = new Set()
  /** @type {{ key: string, data: unknown, outcome?: any, error?: any }[]} */
  const published = []
  /** @type {{ key: string, made: import('./keycast/rooms/message-list.js').MessageList }[]} */
  const lists = []
  let asked = 0
  let answered = 0

  /** @param {Promise<unknown>} call */
  function ask(call) {
    asked++
    call.then(
      () => answered++,
      error => {
        if (
          !['journal_unavailable', 'other_epoch', 'fetcher_unavailable', 'closed'].includes(error.code) &&
          error.code !== 'closed'
        )
          fail(`a call: ${error}`)
        answered++
      },
    )
  }

  /** @param {string} key */
  function watch(key) {
    if (watched.has(key)) return
    const one = { handle: keycast.value(key), shown: 0 }
    watched.set(key, one)
    one.handle.on('change', () => {
      const { value } = one.handle.state
      if (!value) return
      if (value.order < one.shown) fail(`${key} went back from ${one.shown} to ${value.order}`)
      if (value.order > (values.get(key) ?? 0)) fail(`${key} shows what is to come`)
      one.shown = value.order
    })
  }

  /** @param {string} key */
  function follow(key) {
    const room = roomOf(key)
    const kept = room.all.at(-1)
    const options = pick([
      {},
      { last: 3 },
      { presence: true },
      kept ? { after: { epoch: kept.epoch, seq: kept.seq } } : {},
    ])
    const handle = keycast.room(key, options)
    const one = { key, handle, last: handle.position, movedMs: 0 }
    followed.add(one)
    handle.on('change', () => {
      one.last ??= handle.position
      one.movedMs = world.now()
    })
    handle.on('message', (/** @type {any} */ { position, data }) => {
      const { epoch, seq } = /** @type {any} */ (one.last ?? {})
      if (one.last && (epoch !== position.epoch || seq + 1 !== position.seq)) {
        fail(`${key}: ${JSON.stringify(position)} came after ${JSON.stringify(one.last)}`)
      }
      one.last = position
      one.movedMs = world.now()
      const kept = room.all.find(
        (/** @type {any} */ each) => each.epoch === position.epoch && each.seq === position.seq,
      )
      if (kept?.data !== data && !kept?.isDeleted)
        fail(`${key}: ${data} at ${JSON.stringify(position)} is not what was kept`)
    })
    handle.on('gap', (/** @type {any} */ { position, reason }) => {
      const { epoch, seq } = /** @type {any} */ (one.last ?? {})
      const next = room.all.find((/** @type {any} */ each) => each.epoch === epoch && each.seq === seq + 1)
      if (reason === 'epoch' ? epoch === position.epoch : !(epoch === position.epoch && next?.isGone)) {
        fail(`${key}: a gap (${reason}) from ${JSON.stringify(one.last)} to ${JSON.stringify(position)} that is none`)
      }
      one.last = position
      one.movedMs = world.now()
    })
  }

  /** @param {string} key */
  function publish(key) {
    const one = /** @type {(typeof published)[0]} */ ({ key, data: `message ${name}${published.length}` })
    published.push(one)
    const room = keycast.room(key, { follow: false })
    room.publish(one.data, { deadlineMs: pick([5_000, 30_000, 240_000]) }).then(
      (/** @type {any} */ outcome) => {
        one.outcome = outcome
      },
      (/** @type {any} */ error) => {
        one.error = error
      },
    )
    room.close()
  }

  /** Whether a list shows nothing of it. @param {any} kept */
  const isHidden = kept => kept.isDeleted || kept.deletes

  /** A list of a page: nothing twice, and no hole. @param {string} key */
  function list(key) {
    const made = createMessageList(keycast, key, { last: 4, keep: pick([5, 2_000]) })
    made.on('change', ({ messages, pending }) => {
      for (const [index, { position, messageId }] of messages.entries()) {
        const next = messages[index + 1]?.position
        const between = roomOf(key).all.filter(
          (/** @type {any} */ each) =>
            each.epoch === next?.epoch && each.seq > position.seq && each.seq < next?.seq && !isHidden(each),
        )
        if (next && (next.epoch !== position.epoch || next.seq <= position.seq || between.length > 0))
          fail(`${key}: a list with a hole, ${JSON.stringify(position)} ${JSON.stringify(next)}`)
        if (pending.some(each => each.messageId === messageId)) fail(`${key}: ${messageId} is there, and pending`)
      }
    })
    lists.push({ key, made })
  }

  /** What fails once a list is closed has no other place. @param {(typeof lists)[0]} one */
  const sendTo = one =>
    one.made.send('of the list').catch(error => lists.includes(one) && fail(`a list rejected: ${error}`))

  const acts = [
    () => watch(pick(KEYS)),
    () => followed.size < 6 && follow(pick(ROOMS)),
    () => publish(pick(ROOMS)),
    () => publish(pick(ROOMS)),
    () => lists.length < 2 && list(pick(ROOMS)),
    () => {
      const [one] = lists
      if (one) pick([() => sendTo(one), one.made.older])()
      if (one && integer(5) === 0) lists.shift()?.made.close()
    },
    () => {
      const [key, one] = pick([...watched, ['', undefined]])
      one?.handle.close()
      watched.delete(key)
    },
    () => {
      const one = pick([...followed, undefined])
      one?.handle.close()
      if (one) followed.delete(one)
    },
    () => ask(keycast.get(pick(KEYS))),
    () => {
      const one = pick([...followed, undefined])
      if (one) ask(pick([() => one.handle.history(), () => one.handle.join('Ann'), () => one.handle.leave()])())
    },
  ]

  function inspect() {
    // A dead connection is found out by timers, and after some time.
    if (page.isHidden || page.isOffline) world.wakes()
    const { session } = /** @type {any} */ (keycast.state)
    const boundMs = session === 'waits' ? FOUND_BY_WAITS_MS : FOUND_MS
    const isLate = (/** @type {number} */ sinceMs) => Math.min(world.now() - sinceMs, world.awakeMs()) > boundMs
    const isDead = world.quietMs() > boundMs
    for (const { handle, shown } of watched.values()) {
      if (handle.state.health !== 'live') continue
      if (isDead || isLate(world.changedMs(handle.key, shown + 1))) fail(`${handle.key} is live at ${shown}`)
    }
    for (const { handle, key, last, movedMs } of followed) {
      if (handle.state.health !== 'live' || !last) continue
      const next = roomOf(key).all.find(
        (/** @type {any} */ each) => each.epoch === last.epoch && each.seq === last.seq + 1,
      )
      if (isDead || isLate(next ? Math.max(next.at, movedMs) : world.now()))
        fail(`${key} is live at ${JSON.stringify(last)} ${isDead}`)
    }
  }

  /** All is well again. */
  function finish() {
    for (const [key, { handle }] of watched) {
      const { health, value } = handle.state
      if (health !== 'live' || value.order !== values.get(key)) {
        fail(`${key} is ${health} at ${value?.order} of ${values.get(key)}: ${handle.state.error}`)
      }
    }
    for (const { key, handle, last } of followed) {
      const { health, pending, error } = handle.state
      const { epoch, seq } = roomOf(key)
      if (health !== 'live' || last?.epoch !== epoch || last.seq !== seq || pending.length > 0) {
        fail(`${key} is ${health} at ${JSON.stringify(last)} of ${seq}, ${pending.length} pending: ${error}`)
      }
    }
    for (const { key, made } of lists) {
      const { health, messages, pending } = made.state
      const { epoch, seq } = messages.at(-1)?.position ?? {}
      const shown = roomOf(key).all.filter((/** @type {any} */ each) => !isHidden(each))
      for (const { position } of messages) {
        const isThere = shown.some(
          (/** @type {any} */ each) => each.epoch === position.epoch && each.seq === position.seq,
        )
        if (!isThere) fail(`the list of ${key} has ${JSON.stringify(position)}, which is deleted`)
      }
      if (health !== 'live' || epoch !== shown.at(-1).epoch || seq !== shown.at(-1).seq || pending.length > 0) {
        fail(`the list of ${key} is ${health} at ${seq}, ${pending.length} pending`)
      }
    }
    if (answered !== asked) fail(`${asked - answered} of ${asked} calls were not answered`)
    for (const { key, data, outcome, error } of published) {
      const kept = roomOf(key).all.filter((/** @type {any} */ each) => each.data === data)
      if (new Set(kept.map((/** @type {any} */ each) => each.epoch)).size < kept.length) fail(`${data} is kept twice`)
      if (outcome) {
        // In another history it is another message.
        const { position } = outcome
        if (!kept.some((/** @type {any} */ each) => each.epoch === position.epoch && each.seq === position.seq)) {
          fail(`${data} was told to be at ${JSON.stringify(position)} and is not`)
        }
      } else if (!error) fail(`${data} has no outcome`)
      else if (error.code === 'not_sent' && kept.length > 0) fail(`${data} was told not to be sent, and is kept`)
    }
    const places = (/** @type {string} */ key) =>
      published.flatMap(({ key: of, outcome }) => (of === key && outcome ? [outcome.position] : []))
    for (const key of ROOMS) {
      for (const [index, { epoch, seq }] of places(key).entries()) {
        const next = places(key)[index + 1]
        if (next?.epoch === epoch && next.seq <= seq)
          fail(`${key}: what was said first is at ${seq}, after ${next.seq}`)
      }
    }
  }

  return { acts, inspect, finish }
}
