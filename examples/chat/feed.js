// The messages as a person reads them: older ones come as the reader scrolls up, new ones never move what is being read.
import { byId, element, setText } from '/element.js'
import { avatar } from './avatar.js'

/**
 * @typedef {import('./chat.js').ChatMessage} ChatMessage
 * @typedef {import('/keycast.js').Message<ChatMessage>} Message
 */

/** Nearer to the end than this counts as reading the newest. */
const END_PX = 60
/** Older messages are loaded before the reader comes to the first. */
const START_PX = 400
/** Messages of one person within this time stand together. */
const TOGETHER_MS = 5 * 60_000

/**
 * @param {import('/keycast/rooms/message-list.js').MessageList<ChatMessage>} list
 * @param {() => string | undefined} user whose session this is, if a token says it
 */
export function createFeed(list, user) {
  const [feed, messages, older, empty, below] = ['feed', 'messages', 'older', 'empty', 'below'].map(byId)
  /** @type {Map<string, HTMLElement>} */
  let rows = new Map()
  /** Ids of what this page sent: a name can be anybody's. @type {Set<string>} */
  const sent = new Set()
  let state = list.state
  let newestSeq = 0
  let unseen = 0
  let followsEnd = true
  let isDue = false
  messages.replaceChildren()

  const off = list.on('change', next => {
    state = next
    // Not when it is drawn: the answer may come before that.
    for (const { messageId } of state.pending) sent.add(messageId)
    if (isDue) return
    isDue = true
    requestAnimationFrame(draw)
  })

  function draw() {
    isDue = false
    const anchor = firstVisible()
    const topBefore = anchor?.getBoundingClientRect().top
    countUnseen()
    drawRows()
    if (followsEnd) feed.scrollTop = feed.scrollHeight
    else if (anchor?.isConnected && topBefore !== undefined) {
      feed.scrollTop += anchor.getBoundingClientRect().top - topBefore
    }
    feed.setAttribute('aria-busy', String(state.isLoading))
    older.hidden = !state.hasOlder
    setText(older, state.isLoading ? 'Loading older messages…' : 'Older messages')
    empty.hidden = !state.live || rows.size > 0
    drawBelow()
    loadOlder()
  }

  function countUnseen() {
    const last = state.messages.at(-1)?.position.seq ?? newestSeq
    if (newestSeq > 0 && !followsEnd) {
      const added = state.messages.filter(message => message.position.seq > newestSeq && !isMine(message))
      unseen += added.length
    }
    newestSeq = last
  }

  /** @param {Message} message */
  function isMine({ from, messageId }) {
    return from === undefined ? sent.has(messageId ?? '') : from === user()
  }

  function drawRows() {
    /** @type {Map<string, HTMLElement>} */
    const next = new Map()
    /** @type {Message | undefined} */
    let before
    for (const message of state.messages) {
      const { epoch, seq } = message.position
      const isTogether = before !== undefined && isSame(before, message)
      const row = rows.get(`${epoch} ${seq}`) ?? createRow(message.data, message.at, message.from)
      row.classList.toggle('together', isTogether)
      row.classList.toggle('mine', isMine(message))
      next.set(`${epoch} ${seq}`, row)
      before = message
    }
    for (const { messageId, data, at } of state.pending) {
      const row = rows.get(messageId) ?? createRow(data, at, user(), element('span', { className: 'note' }, 'Sending…'))
      row.classList.add('mine', 'pending')
      next.set(messageId, row)
    }
    for (const { messageId, data, at, error } of state.failed) {
      next.set(`failed ${messageId}`, rows.get(`failed ${messageId}`) ?? createFailed(messageId, data, at, error))
    }
    let child = messages.firstElementChild
    for (const row of next.values()) {
      if (row === child) child = child.nextElementSibling
      else messages.insertBefore(row, child)
    }
    while (child) {
      const gone = child
      child = child.nextElementSibling
      gone.remove()
    }
    rows = next
  }

  /** @param {string} messageId @param {ChatMessage} data @param {number} at @param {{ code: string, message: string }} error */
  function createFailed(messageId, data, at, error) {
    const text =
      error.code === 'publish_unknown' ? 'It is not known whether this was sent.' : `Not sent: ${error.message}.`
    const again = element('button', { type: 'button' }, 'Try again')
    const discard = element('button', { type: 'button', className: 'quiet' }, 'Discard')
    again.onclick = () => list.retry(messageId)
    discard.onclick = () => list.discard(messageId)
    const row = createRow(
      data,
      at,
      user(),
      element('span', { className: 'note', role: 'alert' }, text, ' ', again, ' ', discard),
    )
    row.classList.add('mine', 'failed')
    return row
  }

  function firstVisible() {
    const { top } = feed.getBoundingClientRect()
    for (const row of messages.children) if (row.getBoundingClientRect().bottom > top) return row
    return undefined
  }

  function drawBelow() {
    below.hidden = unseen === 0
    setText(below, `${unseen} new below`)
  }

  function toEnd() {
    followsEnd = true
    unseen = 0
    feed.scrollTop = feed.scrollHeight
    drawBelow()
  }

  function loadOlder() {
    const isNear = feed.scrollTop < START_PX && feed.scrollHeight > 0
    if (isNear && state.hasOlder && !state.isLoading && !state.error) list.older()
  }

  function onScroll() {
    followsEnd = feed.scrollHeight - feed.scrollTop - feed.clientHeight < END_PX
    if (followsEnd && unseen > 0) toEnd()
    loadOlder()
  }
  function onResize() {
    if (followsEnd) feed.scrollTop = feed.scrollHeight
  }
  const resized = new ResizeObserver(onResize)
  resized.observe(feed)
  feed.addEventListener('scroll', onScroll, { passive: true })
  below.addEventListener('click', toEnd)

  return {
    toEnd,
    close() {
      off()
      resized.disconnect()
      feed.removeEventListener('scroll', onScroll)
      below.removeEventListener('click', toEnd)
      below.hidden = true
      messages.replaceChildren()
    },
  }
}

/** @param {Message} before @param {Message} message */
const isSame = (before, message) =>
  before.from === message.from &&
  nameOf(before.data, before.from) === nameOf(message.data, message.from) &&
  message.at - before.at < TOGETHER_MS

/** The user that the gateway names, else what the writer says. @param {any} data @param {string} [from] */
const nameOf = (data, from) => from ?? (typeof data?.name === 'string' && data.name !== '' ? data.name : 'somebody')

/** @param {any} data of anybody, so of any shape @param {number} at @param {string} [from] @param {Node} [note] */
function createRow(data, at, from, note) {
  const name = nameOf(data, from)
  const text = typeof data?.text === 'string' ? data.text : JSON.stringify(data)
  const time = element(
    'time',
    { dateTime: new Date(at).toISOString(), title: new Date(at).toLocaleString() },
    clock(at),
  )
  const head = element('p', { className: 'who' }, ...nameShown(name, from !== undefined), ' ', time)
  const body = element('div', { className: 'said' }, head, element('p', { className: 'text' }, text))
  if (note) body.append(note)
  return element('li', {}, avatar(name), body)
}

/**
 * Without a token anybody may write under any name, and the page must not say more than it knows.
 *
 * @param {string} name @param {boolean} isVouched
 */
function nameShown(name, isVouched) {
  if (isVouched) return [element('b', {}, name)]
  const title = 'Written without a token: nobody vouches for this name'
  return [element('i', {}, name), ' ', element('span', { className: 'unvouched', title }, 'unverified')]
}

/** @param {number} at */
function clock(at) {
  const date = new Date(at)
  const time = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
  const isToday = date.toDateString() === new Date().toDateString()
  return isToday ? time : `${date.toLocaleDateString([], { day: 'numeric', month: 'short' })}, ${time}`
}
