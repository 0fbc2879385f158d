// The page: keys typed or named by the address become cards, one connection keeps them true.
import { createCard } from './card.js'
import { createConnection } from './connection.js'
import { setText } from './element.js'
import { hashOfKeys, KEYS_MAX, keysOfHash, readKeys } from './key-list.js'
import { counted, lasted, rated, sized } from './quantities.js'
import { createRates } from './rates.js'
import { startTheme } from './theme.js'
import { createWatched, take } from './watched.js'

/** @typedef {{ watched: import('./watched.js').Watched, card: ReturnType<typeof createCard> }} Entry */

/** @param {string} id @returns {any} */
const byId = id => document.getElementById(id)
const [input, problem, cards, empty] = ['keys', 'keys-problem', 'cards', 'empty'].map(byId)
const [totals, connectionPanel, connectNow] = ['totals', 'connection', 'connect-now'].map(byId)

/** @type {Map<string, Entry>} */
const entries = new Map()
/** Entries with something new to draw: drawn once a frame, however many messages came. @type {Set<Entry>} */
const dirty = new Set()
const rates = createRates()

/** @param {string[]} keys those already watched are left as they are */
function watch(keys) {
  const added = keys.filter(key => !entries.has(key))
  const room = added.slice(0, KEYS_MAX - entries.size)
  for (const key of room) {
    const watched = createWatched(key)
    const card = createCard(watched, { onRemove: () => unwatch(key), onRetry: () => retry(key) })
    entries.set(key, { watched, card })
    cards.append(card.root)
  }
  subscribe(room)
  tick()
  return room.length === added.length
}

/** @param {string} key */
function unwatch(key) {
  const entry = /** @type {Entry} */ (entries.get(key))
  const neighbour = entry.card.root.nextElementSibling ?? entry.card.root.previousElementSibling
  const focused = entry.card.root.contains(document.activeElement)
  entry.card.root.remove()
  entries.delete(key)
  dirty.delete(entry)
  connection.send({ type: 'unsubscribe', keys: [key] })
  remember()
  tick()
  // The button that had the focus is gone: the keyboard goes on from its neighbour.
  if (focused) (neighbour?.querySelector('.remove') ?? input).focus()
}

/** @param {string[]} keys with what is held of each, so that only what changed is sent */
function subscribe(keys) {
  if (keys.length === 0) return
  const wanted = keys.map(key => {
    const version = entries.get(key)?.watched.version
    return version === undefined ? key : { key, version }
  })
  connection.send({ type: 'subscribe', keys: wanted })
}

/**
 * Asks for a key now. A subscription is answered with what is known of the key; only a get has the backend asked.
 *
 * @param {string} key
 */
function retry(key) {
  if (!entries.get(key)?.watched.error?.subscribed) subscribe([key])
  else connection.send({ type: 'get', id: 'retry', key })
}

function remember() {
  history.replaceState(null, '', `${location.pathname}${location.search}${hashOfKeys(entries.keys())}`)
}

const connection = createConnection({
  url: `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/ws`,

  onState(state) {
    connectionPanel.dataset.state = state.name
    setText(byId('connection-text'), connectionTexts[state.name])
    connectionPanel.title = 'reason' in state ? state.reason : ''
    connectNow.hidden = state.name !== 'waiting' && state.name !== 'stopped'
    if (state.name === 'live') subscribe([...entries.keys()])
    tick()
  },

  onMessage(message, text) {
    rates.received(text.length)
    const entry = message.key === undefined ? undefined : entries.get(message.key)
    if (!entry) {
      // No key of ours: an error about a request as a whole.
      if (message.type === 'error' && message.key === undefined) setText(problem, `The gateway: ${message.message}`)
      return
    }
    const { changes } = entry.watched
    take(entry.watched, message, { text, nowMs: performance.now() })
    if (entry.watched.changes !== changes) rates.changed()
    if (dirty.size === 0) requestAnimationFrame(draw)
    dirty.add(entry)
  },
})

const connectionTexts = { connecting: 'Connecting…', live: 'Live', waiting: 'Reconnecting', stopped: 'Disconnected' }

function draw() {
  for (const { card } of dirty) card.show()
  dirty.clear()
  tick()
}

/** What changes as time passes: ages, countdowns, charts, totals. */
function tick() {
  const state = connection.state()
  const nowMs = performance.now()
  for (const { card } of entries.values()) card.tick(nowMs, state.name === 'live')
  empty.hidden = entries.size > 0
  totals.hidden = entries.size === 0
  setText(byId('total-keys'), String(entries.size))
  setText(byId('total-keys-unit'), entries.size === 1 ? 'key' : 'keys')
  setText(byId('total-changes'), rated(rates.changesPerSecond()))
  setText(byId('total-bytes'), `${sized(rates.bytesPerSecond())}/s`)
  setText(byId('connection-countdown'), countdown(state, nowMs))
  document.title = entries.size === 0 ? 'Keycast' : `${counted(entries.size, 'key')} · Keycast`
}

/** @param {import('./connection.js').ConnectionState} state @param {number} nowMs */
function countdown(state, nowMs) {
  if (state.name === 'waiting') return `in ${lasted(state.untilMs - nowMs)}`
  return state.name === 'stopped' ? state.reason : ''
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

connectNow.addEventListener('click', connection.connectNow)
addEventListener('online', connection.check)
// A page that was hidden had its timers slowed, one from the back-forward cache has lost its connection unheard.
addEventListener('pageshow', event => event.persisted && connection.check())
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && connection.check())
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
connection.connectNow()
setInterval(tick, 1_000)
