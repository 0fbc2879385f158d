// Tells the truth about the connection: whether messages come and go, and when it is tried again.
import { byId, setText } from '/element.js'

/** @param {import('/keycast.js').Keycast} keycast */
export function startBanner(keycast) {
  const [panel, text, bar, barText, countdown, tryNow] = [
    'connection',
    'connection-text',
    'banner',
    'banner-text',
    'banner-countdown',
    'try-now',
  ].map(byId)
  let state = keycast.state
  /** Of the room that is shown. @type {import('/keycast.js').RoomState | undefined} */
  let room
  let wasOpen = false
  /** @type {any} */
  let timer

  tryNow.addEventListener('click', () => keycast.reconnect())
  keycast.on('state', next => {
    state = next
    wasOpen ||= state.name === 'open'
    draw()
  })

  function draw() {
    clearInterval(timer)
    const problem = problemOf()
    panel.dataset.state = problem ? 'troubled' : state.name
    setText(text, problem ? 'Not connected' : state.name === 'open' ? 'Connected' : 'Connecting…')
    bar.hidden = problem === undefined
    setText(barText, problem ?? '')
    tryNow.hidden = state.name === 'open' || state.name === 'connecting'
    countdown.textContent = ''
    if (state.name !== 'waiting') return
    count()
    timer = setInterval(count, 1_000)
  }

  function count() {
    if (state.name !== 'waiting') return
    const seconds = Math.max(0, Math.ceil((state.retryAt - Date.now()) / 1_000))
    countdown.textContent = seconds > 0 ? ` Trying again in ${seconds} s.` : ' Trying again.'
  }

  /**
   * The problem that keeps messages from coming and going; undefined if there is none.
   *
   * @returns {string | undefined}
   */
  function problemOf() {
    if (state.name === 'closed') return `The connection is closed: ${state.reason}.`
    if (state.name === 'offline') return 'There is no network. What you write is sent when it is back.'
    if (state.name === 'waiting') return 'The connection is lost. What you write is sent when it is back.'
    if (state.name === 'connecting') return wasOpen ? 'Connecting again…' : undefined
    const error = room?.error
    if (!error || error.code === 'name_taken') return undefined
    if (!error.subscribed) return `This room cannot be read: ${error.message}.`
    return 'Messages cannot be delivered just now. What you write is sent when they can.'
  }

  return {
    /** @param {import('/keycast.js').RoomState} next */
    room(next) {
      room = next
      draw()
    },
  }
}
