// A JSON value as a tree that folds. Only what is open is drawn, a long list only at both ends, and a new value touches
// only the nodes it changes: what the reader opened, selected and scrolled to stays.
import { DEPTH_MAX, entriesOf, inline, isContainer, kindOf, same } from './changes.js'
import { element, flash, setText } from './element.js'

/**
 * @typedef {object} Node
 * @property {HTMLElement} root
 * @property {(value: unknown) => boolean} update false when the node cannot show such a value and must be replaced
 * @property {(label: string) => void} rename
 */

/** Of a longer list only so many first and last entries are drawn: what is new is mostly at its end. */
const WHOLE_ENTRIES = 20
const HEAD_ENTRIES = 1
const TAIL_ENTRIES = 5
const MORE_ENTRIES = 100

/** Open without being asked: the value itself and its members, but for those that fit a line. */
const OPEN_DEPTH = 2

/** A list of more is long even where it fits. */
const LINE_MEMBERS_MAX = 12

const TEXT_CHARACTERS = 140
const PREVIEW_CHARACTERS = 90

/**
 * @param {unknown} value
 * @returns {{ root: HTMLElement, update: (value: unknown) => void }}
 */
export function createTree(value) {
  let node = createNode(undefined, value, 0)
  const root = element('div', { className: 'tree' }, node.root)
  return {
    root,
    update(next) {
      for (const marked of root.querySelectorAll('.changed')) marked.classList.remove('changed')
      if (node.update(next)) return
      node = createNode(undefined, next, 0)
      root.replaceChildren(node.root)
      flash(node.root)
    },
  }
}

/** @param {string | undefined} label @param {unknown} value @param {number} depth @returns {Node} */
function createNode(label, value, depth) {
  return isContainer(value) && depth < DEPTH_MAX ? createContainer(label, value, depth) : createLeaf(label, value)
}

/** @param {string | undefined} label @param {unknown} value @returns {Node} */
function createLeaf(label, value) {
  const name = element('span', { className: 'name', textContent: label ?? '' })
  const shown = element('span')
  const root = element('div', { className: 'leaf' }, ...(label === undefined ? [] : [name]), shown)
  let whole = false

  const draw = () => {
    const kind = kindOf(value)
    const text = kind === 'string' ? JSON.stringify(value) : inline(value, TEXT_CHARACTERS)
    shown.className = `${kind} scalar`
    if (whole || text.length <= TEXT_CHARACTERS) return setText(shown, text)
    const more = element('button', {
      type: 'button',
      className: 'more',
      textContent: `show all ${text.length.toLocaleString('en')} characters`,
      onclick: () => {
        whole = true
        draw()
      },
    })
    shown.replaceChildren(`${text.slice(0, TEXT_CHARACTERS)}… `, more)
  }

  draw()
  return {
    root,
    update(next) {
      if (isContainer(next)) return false
      if (Object.is(value, next)) return true
      value = next
      draw()
      flash(root)
      return true
    },
    rename: next => setText(name, next),
  }
}

/** @param {string | undefined} label @param {object} value @param {number} depth @returns {Node} */
function createContainer(label, value, depth) {
  const list = Array.isArray(value)
  const name = element('span', { className: 'name', textContent: label ?? '' })
  const count = element('span', { className: 'count' })
  const preview = element('span', { className: 'preview' })
  const summary = element('summary', {}, ...(label === undefined ? [] : [name]), count, preview)
  const children = element('div', { className: 'children' })
  const root = element('details', { open: depth < OPEN_DEPTH && !(depth > 0 && fitsLine(value)) }, summary, children)
  const gap = element('div', { className: 'gap' })

  /** The drawn nodes by entry id. @type {Map<string, Node>} */
  const drawn = new Map()
  let headEntries = HEAD_ENTRIES

  const describe = () => {
    const size = list ? /** @type {unknown[]} */ (value).length : Object.keys(value).length
    setText(count, list ? `[${size}]` : `{${size}}`)
    setText(preview, root.open ? '' : inline(value, PREVIEW_CHARACTERS))
  }

  /** @param {Set<string>} [known] ids of the value before: an entry drawn for the first time is new only if not among them */
  const draw = known => {
    describe()
    if (!root.open) return
    const entries = entriesOf(value)
    const hidden = entries.length > WHOLE_ENTRIES ? Math.max(0, entries.length - headEntries - TAIL_ENTRIES) : 0
    const shown = hidden === 0 ? entries : [...entries.slice(0, headEntries), ...entries.slice(headEntries + hidden)]

    const kept = new Set(shown.map(({ id }) => id))
    for (const [id, node] of drawn) {
      if (kept.has(id)) continue
      node.root.remove()
      drawn.delete(id)
    }
    const rows = shown.map(entry => drawEntry(entry, known).root)
    if (hidden > 0) rows.splice(headEntries, 0, drawGap(hidden))
    else gap.remove()

    let next = children.firstChild
    for (const row of rows) {
      if (row === next) next = row.nextSibling
      else children.insertBefore(row, next)
    }
  }

  /** @param {import('./changes.js').Entry} entry @param {Set<string>} [known] */
  const drawEntry = ({ id, label, value }, known) => {
    const held = drawn.get(id)
    if (held?.update(value)) {
      held.rename(label)
      return held
    }
    held?.root.remove()
    const node = createNode(label, value, depth + 1)
    drawn.set(id, node)
    if (held) flash(node.root)
    if (known && !known.has(id)) flash(node.root)
    return node
  }

  /** @param {number} hidden entries */
  const drawGap = hidden => {
    const text = `${hidden.toLocaleString('en')} more between`
    if (gap.dataset.text === text) return gap
    gap.dataset.text = text
    /** @param {string} label @param {number} entries */
    const button = (label, entries) =>
      element('button', {
        type: 'button',
        className: 'more',
        textContent: label,
        onclick: () => {
          headEntries += entries
          draw()
        },
      })
    gap.replaceChildren(
      element('span', { textContent: text }),
      ...(hidden > MORE_ENTRIES ? [button(`show ${MORE_ENTRIES}`, MORE_ENTRIES)] : []),
      button('show all', hidden),
    )
    return gap
  }

  root.addEventListener('toggle', () => draw())
  draw()

  return {
    root,
    update(next) {
      if (!isContainer(next) || Array.isArray(next) !== list) return false
      if (same(value, next)) return true
      const known = new Set(entriesOf(value).map(({ id }) => id))
      value = next
      if (!root.open) flash(summary)
      draw(known)
      return true
    },
    rename: next => setText(name, next),
  }
}

/** @param {object} value */
function fitsLine(value) {
  const members = Object.values(value)
  if (members.length > LINE_MEMBERS_MAX || members.some(isContainer)) return false
  return inline(value, PREVIEW_CHARACTERS).length < PREVIEW_CHARACTERS
}
