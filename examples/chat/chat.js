// The chat: one room, named by the address, with its members; beside it a value that the backend changes.

import { byId } from '/element.js'
import { FallbackSocket } from '/keycast/fallback/fallback.js'
import { createMessageList } from '/keycast/rooms/message-list.js'
import { connect } from '/keycast.js'
import { recall, remember } from '/storage.js'
import { startTheme } from '/theme.js'
import { startBanner } from './banner.js'
import { createFeed } from './feed.js'
import { createPeople } from './people.js'
import { createValueView } from './value-view.js'

/**
 * The content of a chat message. Sessions without a token have no user, so the name is part of the message, and is shown
 * as unverified; with tokens the gateway names the user in `from`, and nobody can pretend another.
 *
 * @typedef {{ name: string, text: string }} ChatMessage
 */

const ROOM_DEFAULT = '1'
const roomGrammar = /^[A-Za-z0-9._~-]{1,64}$/

/** The reader's name, and the claims by which rooms recognize it. @param {string} what */
const stored = what => `keycast-chat ${what}`

const [roomInput, joinForm, nameInput, nameProblem] = ['room', 'join', 'name', 'name-problem'].map(byId)
const [composeForm, textInput] = ['compose', 'text'].map(byId)

const keycast = connect('/ws', { WebSocket: FallbackSocket })
const banner = startBanner(keycast)
startTheme(byId('theme'))

/** The room that is shown. @type {ReturnType<typeof openRoom> | undefined} */
let shown

/** @param {string} id */
function openRoom(id) {
  const key = `room:${id}`
  /** @type {import('/keycast/rooms/message-list.js').MessageList<any>} */
  const list = createMessageList(keycast, key, { presence: true })
  const { room } = list
  let name = recall(stored('name')) ?? ''
  const feed = createFeed(list, () => (keycast.state.name === 'open' ? keycast.state.user : undefined))
  const people = createPeople(room)
  const value = createValueView(keycast.value(`conversation:${id}`))
  let isJoining = false
  /** The name to ask for again: it was refused for a while. @type {string | undefined} */
  let refused
  /** @type {any} */
  let timer
  // It may have been refused where requests that wait were the only way.
  const offState = keycast.on('state', state => state.name === 'open' && joinAgain())

  function joinAgain() {
    if (refused !== undefined) join(refused)
  }

  room.on('change', ({ joinedAs, error }) => {
    banner.room(room.state)
    joinForm.hidden = joinedAs !== undefined
    composeForm.hidden = joinedAs === undefined
    if (joinedAs === undefined && error?.code === 'name_taken') say(error)
  })

  /** @param {any} error */
  function say({ code, message }) {
    nameProblem.textContent = code === 'name_taken' ? 'Somebody here has that name. Choose another.' : message
    nameInput.setAttribute('aria-invalid', 'true')
  }

  /** @param {string} wanted */
  async function join(wanted) {
    if (isJoining) return
    isJoining = true
    clearTimeout(timer)
    refused = undefined
    nameProblem.textContent = ''
    nameInput.removeAttribute('aria-invalid')
    try {
      const joined = await room.join(wanted, recall(stored(`claim ${key} ${wanted}`)))
      name = joined.name
      remember(stored('name'), name)
      if (joined.claim) remember(stored(`claim ${key} ${name}`), joined.claim)
      if (shown === opened && document.activeElement === document.body) textInput.focus()
    } catch (/** @type {any} */ error) {
      // Of a room that was left in the meantime nothing is said.
      if (shown !== opened) return
      say(error)
      if (error.retryAfterMs === undefined) return
      refused = wanted
      timer = setTimeout(joinAgain, error.retryAfterMs)
    } finally {
      isJoining = false
    }
  }

  const opened = {
    join,
    /** @param {string} text */
    send(text) {
      feed.toEnd()
      const sending = list.send({ name: room.state.joinedAs ?? name, text })
      // It fails here where the room was left meanwhile; any other failure is shown in the list.
      sending.catch(error => console.error(`Not sent: ${text}`, error))
    },
    close() {
      offState()
      clearTimeout(timer)
      feed.close()
      people.close()
      value.close()
      list.close()
    },
  }
  nameInput.value = name
  if (name) join(name)
  return opened
}

function readAddress() {
  const given = location.hash.slice(1)
  const id = roomGrammar.test(given) ? given : ROOM_DEFAULT
  roomInput.value = id
  document.title = `Room ${id} – Keycast chat`
  shown?.close()
  joinForm.hidden = false
  composeForm.hidden = true
  shown = openRoom(id)
}

window.addEventListener('hashchange', readAddress)
byId('go').addEventListener('submit', (/** @type {SubmitEvent} */ event) => {
  event.preventDefault()
  const id = roomInput.value.trim()
  roomInput.setCustomValidity(roomGrammar.test(id) ? '' : 'A room is letters, digits and . _ ~ -')
  if (roomInput.reportValidity()) location.hash = id
})
roomInput.addEventListener('input', () => roomInput.setCustomValidity(''))

joinForm.addEventListener('submit', (/** @type {SubmitEvent} */ event) => {
  event.preventDefault()
  const name = nameInput.value.trim()
  if (name) shown?.join(name).then(() => composeForm.hidden || textInput.focus())
})

function submit() {
  const text = textInput.value.trim()
  if (!text) return
  textInput.value = ''
  fitText()
  shown?.send(text)
}
composeForm.addEventListener('submit', (/** @type {SubmitEvent} */ event) => {
  event.preventDefault()
  submit()
})
textInput.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
  // While an input method composes, Enter chooses a word.
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  submit()
})

/** The field grows with its text. */
function fitText() {
  textInput.style.height = 'auto'
  textInput.style.height = `${Math.min(textInput.scrollHeight + 2, 180)}px`
}
textInput.addEventListener('input', fitText)

readAddress()
