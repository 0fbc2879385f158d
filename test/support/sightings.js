// Runs in a page: follows the values and rooms that its address names, and notes any that is shown twice, backwards or
// not at all. A page that is loaded anew continues its earlier notes.
const page = /** @type {any} */ (globalThis)
const asked = new page.URLSearchParams(page.location.search)
const { connect } = await import(`${page.location.origin}/keycast.js`)

/**
 * The sightings by key: the last revision of each value, and the messages of each room. `restored`: how often the page
 * came back as it was left.
 *
 * @type {{ problems: string[], restored: number, revisions: Record<string, number>, messages: Record<string, any[]>,
 *   positions: Record<string, any> }}
 */
const seen = JSON.parse(
  page.sessionStorage.getItem('seen') ?? '{"problems":[],"restored":0,"revisions":{},"messages":{},"positions":{}}',
)
page.addEventListener('pageshow', (/** @type {any} */ { persisted }) => {
  if (persisted) seen.restored += 1
})

const { FallbackSocket } = asked.has('fallback')
  ? await import(`${page.location.origin}/keycast/fallback/fallback.js`)
  : { FallbackSocket: undefined }

const keycast = connect(asked.get('gateway'), {
  WebSocket: FallbackSocket,
  token: asked.has('anonymous')
    ? undefined
    : () => page.fetch('/token').then((/** @type {any} */ response) => response.text()),
})

/** @param {string} key */
function followValue(key) {
  /** @type {any} */
  let last
  keycast.value(key).on('change', (/** @type {any} */ state) => {
    const { value, version, stale, error, health } = state
    const isTwice =
      last && health === last.health && version === last.version && stale === last.stale && error === last.error
    last = state
    if (error && !error.subscribed) seen.problems.push(`${key} ended: ${error.code}`)
    if (value === undefined) return
    if (isTwice) seen.problems.push(`${key} told twice of revision ${value.revision}`)
    if (value.revision < seen.revisions[key]) seen.problems.push(`${key} went back to revision ${value.revision}`)
    seen.revisions[key] = value.revision
  })
}

/** @param {string} key */
function followRoom(key) {
  const room = keycast.room(key, { after: seen.positions[key] })
  room.on(
    'change',
    (/** @type {any} */ { error }) => error && !error.subscribed && seen.problems.push(`${key} ended: ${error.code}`),
  )
  room.on('gap', (/** @type {any} */ { reason }) => seen.problems.push(`${key} has a gap: ${reason}`))
  room.on('message', (/** @type {any} */ { position, data }) => {
    const last = seen.positions[key]
    const follows = !last || (last.epoch === position.epoch && last.seq + 1 === position.seq)
    if (!follows) seen.problems.push(`${key}: message ${position.seq} after ${last.seq}`)
    seen.positions[key] = position
    seen.messages[key] ??= []
    seen.messages[key].push(data)
  })
  return room
}

/** Names as `doc:1` or, for many, `doc:0..99`. @param {string} name @returns {string[]} */
function keysOf(name) {
  const [, start, end] = /^(.*:)0\.\.(\d+)$/.exec(name) ?? []
  return start ? Array.from({ length: Number(end) + 1 }, (_, n) => start + n) : [name]
}

const values = asked.getAll('value').flatMap(keysOf)
values.forEach(followValue)
const rooms = asked.getAll('room').flatMap(keysOf).map(followRoom)
page.addEventListener('pagehide', () => {
  // Of a room without a message yet, too: all that is said from where its stream began is to be seen.
  for (const { key, position } of rooms) seen.positions[key] = position
  page.sessionStorage.setItem('seen', JSON.stringify(seen))
})
Object.assign(page, {
  seen,
  keycast,
  rooms,
  isReady: () =>
    values.every((/** @type {string} */ key) => key in seen.revisions) &&
    rooms.every((/** @type {any} */ { state }) => state.live),
})
