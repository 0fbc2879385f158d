// A value of the backend, live: what changed last, and whether it is as the backend has it now.
import { byId, element, flash, setText } from '/element.js'

/** The number of the conversation's newest messages that are shown. */
const SHOWN = 3

/** @param {import('/keycast.js').ValueHandle} handle */
export function createValueView(handle) {
  const [key, mark, target] = ['value-key', 'value-mark', 'value'].map(byId)
  setText(key, handle.key)
  setText(mark, '')
  target.replaceChildren()
  /** @type {string | undefined} */
  let version

  handle.on('change', state => {
    const { value, stale, error } = state
    setText(mark, error ? error.message : stale ? 'not up to date' : '')
    if (state.version === version) return
    const isChange = version !== undefined
    version = state.version
    target.replaceChildren(...contentOf(value))
    if (isChange) flash(target)
  })
  return handle
}

/** @param {any} value */
function contentOf(value) {
  if (value === undefined) return []
  const messages = Array.isArray(value?.messages) ? value.messages.slice(-SHOWN) : undefined
  if (!messages) return [element('pre', {}, JSON.stringify(value, null, 2).slice(0, 2_000))]
  const title = element('p', { className: 'title' }, String(value.title ?? ''))
  const facts = element('p', { className: 'facts' }, `revision ${value.revision}, ${value.messages.length} messages`)
  const items = messages.map((/** @type {any} */ message) =>
    element('li', {}, element('b', {}, String(message?.author)), ` ${message?.text}`),
  )
  return [title, facts, element('ul', {}, ...items)]
}
