// A round with somebody's initial, in a colour that is the same wherever the name stands.
import { element } from '/element.js'

/** The number of colours in chat.css. */
const COLOURS = 8

/** @param {string} name */
export function avatar(name) {
  let hash = 0
  for (const character of name) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0
  const [initial] = [...name]
  const made = element('span', { className: 'avatar' }, initial.toUpperCase())
  made.dataset.colour = String(hash % COLOURS)
  made.setAttribute('aria-hidden', 'true')
  return made
}
