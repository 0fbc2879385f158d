// One key on the page: its content, its age, its last changes and its problem.
import { changesBetween, inline, lineChanges } from './changes.js'
import { element, setText } from './element.js'
import { createTree } from './json-tree.js'
import { ago, counted, lasted, sized } from './quantities.js'
import { createBytes, createText } from './text-view.js'
import { activityOf } from './watched.js'

/** @typedef {import('./watched.js').Watched} Watched */

const CHART_BARS = 30
const CHART_HEIGHT = 22
const CHANGE_LINES = 4
const CHANGE_CHARACTERS = 60

/**
 * @param {Watched} watched
 * @param {{ onRemove: () => void, onRetry: () => void }} actions
 */
export function createCard(watched, { onRemove, onRetry }) {
  const { key } = watched
  const colon = key.indexOf(':')
  const state = element('span', { className: 'hidden' })
  const title = element(
    'h2',
    { id: `key-${key}` },
    element('span', { className: 'dot', ariaHidden: 'true' }),
    element('span', { className: 'namespace', textContent: key.slice(0, colon + 1) }),
    element('wbr'),
    element('span', { className: 'id', textContent: key.slice(colon + 1) }),
    state,
  )
  const http = element('a', {
    className: 'quiet',
    // The `?` of a key would begin a query of the URL.
    href: `/v1/values/${encodeURI(key).replaceAll('?', '%3F')}`,
    target: '_blank',
    rel: 'noopener',
    title: 'The same value over plain HTTP, with ETag and Age',
    textContent: 'HTTP',
    ariaLabel: `${key} over plain HTTP`,
  })
  const remove = element('button', {
    type: 'button',
    className: 'quiet remove',
    title: 'Stop watching',
    ariaLabel: `Stop watching ${key}`,
    textContent: '×',
    onclick: onRemove,
  })
  const chart = createChart()
  const age = element('span', { className: 'age' })
  const changes = element('span')
  const bytes = element('span')
  const type = element('span')
  const version = element('code', { className: 'version', title: 'The version: made from the content alone' })
  const noticeText = element('p')
  const retry = element('button', { type: 'button', textContent: 'Try now', onclick: onRetry })
  const notice = element('div', { className: 'notice', role: 'status', hidden: true }, noticeText, retry)
  const difference = element('ul', { className: 'difference', ariaLabel: 'Last change' })
  const body = element('div', { className: 'body', tabIndex: 0, role: 'group', ariaLabel: `Value of ${key}` })
  const root = element(
    'article',
    { className: 'card' },
    element('header', {}, title, chart.root, http, remove),
    element('p', { className: 'facts' }, age, changes, bytes, type, version),
    notice,
    difference,
    body,
  )
  root.setAttribute('aria-labelledby', title.id)

  /** @type {{ format: string, view: { root: HTMLElement, update: (value: any) => void } } | undefined} */
  let shown
  /** @type {Watched['content']} */
  let drawn

  const drawContent = () => {
    const { content } = watched
    if (content === drawn) return
    if (content === undefined) {
      shown = undefined
      drawn = undefined
      body.replaceChildren()
      difference.replaceChildren()
      return
    }
    drawDifference(difference, drawn, content)
    if (shown?.format === content.format) shown.view.update(content.format === 'json' ? content.data : content)
    else {
      shown = { format: content.format, view: createView(content) }
      body.replaceChildren(shown.view.root)
    }
    drawn = content
  }

  return {
    root,

    /** Draws what a message changed. */
    show() {
      drawContent()
      const { content, changes: count, bytes: size, version: held } = watched
      difference.hidden = difference.childElementCount === 0
      body.hidden = content === undefined
      setText(changes, content ? counted(count, 'change') : '')
      setText(bytes, content ? sized(size) : '')
      setText(type, content && content.format !== 'json' ? content.contentType.split(';')[0] : '')
      setText(version, held ?? '')
    },

    /**
     * Draws what passing time changes.
     *
     * @param {number} nowMs
     * @param {boolean} live whether the connection is
     */
    tick(nowMs, live) {
      const { content, changedAtMs, stale, error } = watched
      const health = error ? 'error' : stale ? 'stale' : content ? 'fresh' : 'waiting'
      root.dataset.health = health
      root.classList.toggle('offline', !live)
      setText(state, `, ${live ? spoken[health] : 'not connected'}`)
      setText(age, changedAtMs === undefined ? 'waiting for the first value…' : `changed ${ago(nowMs - changedAtMs)}`)
      if (error && content === undefined) setText(age, 'no value yet')
      chart.draw(activityOf(watched, nowMs, CHART_BARS))
      notice.hidden = !error && !stale
      retry.hidden = !error || !live
      if (error) setText(noticeText, errorText(error, nowMs))
      else if (stale) setText(noticeText, `Not confirmed for ${lasted(nowMs - stale.sinceMs)}: ${stale.text}.`)
    },
  }
}

const spoken = { fresh: 'up to date', stale: 'stale', error: 'failing', waiting: 'waiting for the first value' }

/** @param {NonNullable<Watched['error']>} error @param {number} nowMs */
function errorText({ code, text, subscribed, retryAtMs }, nowMs) {
  const sentence = `${text.charAt(0).toUpperCase()}${text.slice(1)} (${code}).`
  if (!subscribed) return `${sentence} The key is not being watched.`
  if (retryAtMs === undefined) return sentence
  const waitMs = retryAtMs - nowMs
  return `${sentence} ${waitMs > 500 ? `Asked again in ${lasted(waitMs)}.` : 'Asking again…'}`
}

/** @param {NonNullable<Watched['content']>} content */
function createView(content) {
  if (content.format === 'json') return createTree(content.data)
  return content.format === 'text' ? createText(content) : createBytes(content)
}

/**
 * Says in a few lines what the last version changed.
 *
 * @param {HTMLElement} list
 * @param {Watched['content']} before
 * @param {NonNullable<Watched['content']>} after
 */
function drawDifference(list, before, after) {
  const changes = differencesOf(before, after)
  const shown = changes.length <= CHANGE_LINES ? CHANGE_LINES : CHANGE_LINES - 1
  const lines = changes.slice(0, shown).map(({ kind, path, before, after }) => line(kind, path, before, after))
  const more = changes.length - lines.length
  if (more > 0) lines.push(element('li', { className: 'rest', textContent: `and ${counted(more, 'more', 'more')}` }))
  list.replaceChildren(...lines)
}

/** @param {Watched['content']} before @param {NonNullable<Watched['content']>} after */
function differencesOf(before, after) {
  if (before?.format === 'json' && after.format === 'json') return changesBetween(before.data, after.data)
  if (before?.format === 'text' && after.format === 'text') {
    return lineChanges(before.text.split('\n'), after.text.split('\n'))
  }
  return []
}

/** @param {'added' | 'removed' | 'changed'} kind @param {string} path @param {unknown} before @param {unknown} after */
function line(kind, path, before, after) {
  const old = element('del', { textContent: inline(before, CHANGE_CHARACTERS) })
  const fresh = element('ins', { textContent: inline(after, CHANGE_CHARACTERS) })
  const values = { added: [fresh], removed: [old], changed: [old, ' → ', fresh] }[kind]
  return element(
    'li',
    { className: kind },
    element('code', { textContent: path || 'value' }),
    element('span', { className: 'values' }, ...values),
  )
}

/** The last minute's changes as bars. */
function createChart() {
  const namespace = 'http://www.w3.org/2000/svg'
  const root = document.createElementNS(namespace, 'svg')
  const path = document.createElementNS(namespace, 'path')
  root.setAttribute('class', 'chart')
  root.setAttribute('viewBox', `0 0 ${CHART_BARS * 4} ${CHART_HEIGHT}`)
  root.setAttribute('preserveAspectRatio', 'none')
  root.setAttribute('aria-hidden', 'true')
  root.append(path)
  let drawn = ''
  return {
    root,
    /** @param {number[]} counts */
    draw(counts) {
      const highest = Math.max(...counts, 1)
      const bars = counts.map((count, bar) => {
        const height = count === 0 ? 1 : 4 + (count / highest) * (CHART_HEIGHT - 4)
        return `M${bar * 4 + 2} ${CHART_HEIGHT}v-${height.toFixed(1)}`
      })
      const text = bars.join('')
      if (text !== drawn) path.setAttribute('d', text)
      drawn = text
    },
  }
}
