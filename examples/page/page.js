// The page: keys typed or named by the address become cards, and the client library keeps them true.
import { createFallback } from '/keycast/fallback/fallback.js'
import { connect } from '/keycast/values-only.js'
import { createCard } from './card.js'
import { byId, setText } from './element.js'
import { hashOfKeys, KEYS_MAX, keysOfHash, readKeys } from './key-list.js'
import { counted, lasted, rated, sized } from './quantities.js'
import { createRates } from './rates.js'
import { startTheme } from './theme.js'
import { createWatched, take } from './watched.js'

/**
 * @typedef {object} Entry
 * @property {import('./watched.js').Watched} watched
 * @property {ReturnType<typeof createCard>} card
 * @property {import('/keycast.js').ValueHandle} handle
 */

const [input, problem, cards, empty] = ['keys', 'keys-problem', 'cards', 'empty'].map(byId)
const [totals, connectionPanel, connectNow] = ['totals', 'connection', 'connect-now'].map(byId)

/** @type {Map<string, Entry>} */
const entries = new Map()
/** Entries with something new to draw: drawn once a frame, however many messages came. @type {Set<Entry>} */
const dirty = new Set()
const rates = createRates()

/** Counts what arrives, compressed or not, before the library has read it. */
class CountingWebSocket extends WebSocket {
  /** @param {string} url @param {string} protocol */
  constructor(url, protocol) {
    super(url, protocol)
    this.addEventListener('message', ({ data }) => rates.received(data.byteLength ?? data.length))
  }
}

/** The same where WebSockets are blocked. @param {RequestInfo | URL} input @param {RequestInit} [init] */
async function countingFetch(input, init) {
  const response = await fetch(input, init)
  if (response.status !== 200 || !response.body) return response
  const counted = new TransformStream({
    transform(chunk, controller) {
      rates.received(chunk.byteLength)
      controller.enqueue(chunk)
    },
  })
  return new Response(response.body.pipeThrough(counted), response)
}

const keycast = connect('/ws', { WebSocket: createFallback({ WebSocket: CountingWebSocket, fetch: countingFetch }) })

/** @param {string[]} keys those already watched are left as they are */
function watch(keys) {
  const added = keys.filter(key => !entries.has(key))
  const room = added.slice(0, KEYS_MAX - entries.size)
  for (const key of room) {
    const watched = createWatched(key)
    const card = createCard(watched, { onRemove: () => unwatch(key), onRetry: () => retry(key) })
    const entry = { watched, card, handle: keycast.value(key) }
    entries.set(key, entry)
    follow(entry)
    cards.append(card.root)
  }
  tick()
  return room.length === added.length
}

/** @param {Entry} entry */
function follow(entry) {
  entry.handle.on('change', state => {
    const { changes } = entry.watched
    take(entry.watched, state, Date.now())
    if (entry.watched.changes !== changes) rates.changed()
    if (dirty.size === 0) requestAnimationFrame(draw)
    dirty.add(entry)
  })
}

/** A reader who asks for a retry does not wait for the gateway's next one. @param {string} key */
function retry(key) {
  const { watched, handle } = /** @type {Entry} */ (entries.get(key))
  // All subscribers receive the answer to a get.
  if (watched.error?.subscribed) keycast.get(key).catch(() => {})
  else handle.retry()
}

/** @param {string} key */
function unwatch(key) {
  const entry = /** @type {Entry} */ (entries.get(key))
  const neighbour = entry.card.root.nextElementSibling ?? entry.card.root.previousElementSibling
  const focused = entry.card.root.contains(document.activeElement)
  entry.card.root.remove()
  entries.delete(key)
  dirty.delete(entry)
  entry.handle.close()
  remember()
  tick()
  // The button that had the focus is gone: the keyboard goes on from its neighbour.
  if (focused) (neighbour?.querySelector('.remove') ?? input).focus()
}

function remember() {
  history.replaceState(null, '', `${location.pathname}${location.search}${hashOfKeys(entries.keys())}`)
}

/** @type {Record<import('/keycast.js').ConnectionState['name'], string>} */
const connectionTexts = {
  connecting: 'Connecting…',
  open: 'Live',
  waiting: 'Reconnecting',
  offline: 'No network',
  closed: 'Disconnected',
}

keycast.on('state', state => {
  connectionPanel.dataset.state = state.name
  setText(byId('connection-text'), connectionTexts[state.name])
  connectionPanel.title = 'reason' in state ? state.reason : ''
  connectNow.hidden = state.name === 'connecting' || state.name === 'open'
  tick()
})

function draw() {
  for (const { card } of dirty) card.show()
  dirty.clear()
  tick()
}

/** Redraws everything that changes with time: ages, countdowns, charts, totals. */
function tick() {
  const { state } = keycast
  const nowMs = Date.now()
  for (const { card } of entries.values()) card.tick(nowMs, state.name === 'open')
  empty.hidden = entries.size > 0
  totals.hidden = entries.size === 0
  setText(byId('total-keys'), String(entries.size))
  setText(byId('total-keys-unit'), entries.size === 1 ? 'key' : 'keys')
  setText(byId('total-changes'), rated(rates.changesPerSecond()))
  setText(byId('total-bytes'), `${sized(rates.bytesPerSecond())}/s`)
  setText(byId('connection-countdown'), countdown(state, nowMs))
  document.title = entries.size === 0 ? 'Keycast' : `${counted(entries.size, 'key')} · Keycast`
}

/** @param {import('/keycast.js').ConnectionState} state @param {number} nowMs */
function countdown(state, nowMs) {
  if (state.name === 'waiting') return `in ${lasted(state.retryAt - nowMs)}`
  return state.name === 'closed' ? state.reason : ''
}

byId('watch').addEventListener('submit', (/** @type {SubmitEvent} */ event) => {
  event.preventDefault()
  const { keys, problem: wrong } = readKeys(input.value)
  if (wrong) {
    input.setAttribute('aria-invalid', 'true')
    return setText(problem, wrong)
  }
  const all = watch(keys)
  remember()
  input.value = ''
  setText(problem, all ? '' : `This page shows at most ${KEYS_MAX} keys.`)
})

input.addEventListener('input', () => {
  input.removeAttribute('aria-invalid')
  setText(problem, '')
})

byId('examples').addEventListener('click', (/** @type {MouseEvent} */ event) => {
  const button = /** @type {HTMLElement} */ (event.target).closest('button')
  if (!button) return
  watch(readKeys(button.dataset.key ?? '').keys)
  remember()
  input.focus()
})

connectNow.addEventListener('click', keycast.reconnect)
addEventListener('hashchange', () => {
  const named = keysOfHash(location.hash)
  for (const key of entries.keys()) {
    if (!named.includes(key)) unwatch(key)
  }
  watch(named)
  remember()
})

byId('terminal').textContent = [
  `npx wscat -c ${location.origin.replace(/^http/, 'ws')}/ws`,
  '{"type":"subscribe","id":1,"keys":["conversation:1"]}',
].join('\n')
startTheme(byId('theme'))
watch(keysOfHash(location.hash))
if (entries.size === 0) input.focus()
setInterval(tick, 1_000)
