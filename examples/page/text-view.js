// A value that is no JSON: text as it is, bytes as a hex dump (an image as an image). Long ones are cut until asked for.
import { differenceOf, lineChanges } from './changes.js'
import { element } from './element.js'

/** @typedef {{ root: HTMLElement, update: (content: any) => void }} View */

const TEXT_CHARACTERS = 3_000
const BLOCK_LINES = 24
const BYTES_PER_LINE = 16

/** Types that a browser draws without running anything. SVG is left out: it is a document. */
const imageTypes = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'image/bmp'])

/** @param {{ text: string }} content @returns {View} */
export function createText({ text }) {
  const shown = element('pre', { className: 'text' })
  const more = moreButton()
  let whole = false
  /** The changed parts of the text: start and end of each. @type {[number, number][]} */
  let marks = []

  const draw = () => {
    const end = whole ? text.length : Math.min(text.length, TEXT_CHARACTERS)
    const parts = []
    let at = 0
    for (const [start, markEnd] of marks) {
      if (start >= end) break
      parts.push(text.slice(at, start), element('mark', { textContent: text.slice(start, Math.min(markEnd, end)) }))
      at = Math.min(markEnd, end)
    }
    shown.replaceChildren(...parts, text.slice(at, end), end < text.length ? '…' : '')
    more.hidden = end === text.length
    more.textContent = `show all ${text.length.toLocaleString('en')} characters`
  }

  more.onclick = () => {
    whole = true
    draw()
  }
  draw()
  return {
    root: element('div', { className: 'content' }, shown, more),
    update(content) {
      marks = marksOf(text.split('\n'), content.text.split('\n'))
      text = content.text
      draw()
    },
  }
}

/**
 * The parts of the later text that are new: whole lines, or what differs in one that stands where it stood.
 *
 * @param {string[]} before
 * @param {string[]} after
 * @returns {[number, number][]}
 */
function marksOf(before, after) {
  const changed = new Map(lineChanges(before, after).map(change => [change.path, change]))
  /** @type {[number, number][]} */
  const marks = []
  let at = 0
  for (const [index, line] of after.entries()) {
    const change = changed.get(`line ${index + 1}`)
    if (change?.kind === 'added') marks.push([at, at + line.length])
    if (change?.kind === 'changed') {
      const { start, afterEnd } = differenceOf(/** @type {string} */ (change.before), line)
      marks.push([at + start, at + afterEnd])
    }
    at += line.length + 1
  }
  return marks
}

/** @param {{ contentType: string, bytes: Uint8Array<ArrayBuffer> }} content @returns {View} */
export function createBytes(content) {
  const dump = element('pre', { className: 'dump' })
  const picture = element('img', { className: 'picture', alt: 'the value, drawn as an image', hidden: true })
  const more = moreButton()
  let whole = false
  let { bytes } = content
  /**
   * The drawn blocks of lines. A block without a changed byte stays.
   *
   * @type {{ root: HTMLElement, text: string, marked: boolean }[]}
   */
  const blocks = []

  /** @param {boolean} marking whether the differences from the drawn text are marked as new */
  const draw = marking => {
    const lines = Math.ceil(bytes.length / BYTES_PER_LINE)
    const drawn = whole ? lines : Math.min(lines, BLOCK_LINES)
    const count = Math.ceil(drawn / BLOCK_LINES)
    for (const { root } of blocks.splice(count)) root.remove()
    for (let index = 0; index < count; index += 1) {
      const first = index * BLOCK_LINES
      drawBlock(index, dumpLines(bytes, first, Math.min(drawn, first + BLOCK_LINES)), marking)
    }
    more.hidden = drawn === lines
    more.textContent = `show all ${bytes.length.toLocaleString('en')} bytes`
  }

  /** @param {number} index @param {string[]} lines @param {boolean} marking */
  const drawBlock = (index, lines, marking) => {
    const text = lines.join('')
    const held = blocks[index]
    if (held && held.text === text && !held.marked) return
    const root = held?.root ?? dump.appendChild(element('div'))
    const before = held && marking ? held.text.split(/(?<=\n)/) : lines
    root.replaceChildren(
      ...lines.map((line, number) => (line === before[number] ? line : element('mark', { textContent: line }))),
    )
    blocks[index] = { root, text, marked: before !== lines && held?.text !== text }
  }

  // Loaded, a picture needs its URL no more, which would hold the bytes as long as the page is open.
  picture.onload = () => URL.revokeObjectURL(picture.src)

  /** @param {string} contentType */
  const drawPicture = contentType => {
    URL.revokeObjectURL(picture.src)
    const type = contentType.split(';')[0].trim().toLowerCase()
    picture.hidden = !imageTypes.has(type)
    if (!picture.hidden) picture.src = URL.createObjectURL(new Blob([bytes], { type }))
  }

  more.onclick = () => {
    whole = true
    draw(false)
  }
  draw(false)
  drawPicture(content.contentType)
  return {
    root: element('div', { className: 'content' }, picture, dump, more),
    update(next) {
      bytes = next.bytes
      draw(true)
      drawPicture(next.contentType)
    },
  }
}

function moreButton() {
  return element('button', { type: 'button', className: 'more' })
}

/** @param {Uint8Array} bytes @param {number} first @param {number} end of the lines */
function dumpLines(bytes, first, end) {
  const lines = []
  for (let line = first; line < end; line += 1) {
    const start = line * BYTES_PER_LINE
    let hex = ''
    let text = ''
    for (const byte of bytes.subarray(start, start + BYTES_PER_LINE)) {
      hex += `${byte.toString(16).padStart(2, '0')} `
      text += byte > 31 && byte < 127 ? String.fromCharCode(byte) : '·'
    }
    lines.push(`${start.toString(16).padStart(6, '0')}  ${hex.padEnd(BYTES_PER_LINE * 3)} ${text}\n`)
  }
  return lines
}
