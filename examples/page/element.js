// Finds and makes elements. Values reach the page as text nodes only, never as markup.

/** @param {string} id @returns {any} */
export const byId = id => document.getElementById(id)

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Partial<HTMLElementTagNameMap[T]>} [properties]
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties)
  made.append(...children)
  return made
}

/**
 * Sets a text only where it differs: an untouched node keeps a reader's selection, costs no layout, and is not said again
 * by a screen reader.
 *
 * @param {Element} target
 * @param {string} text
 */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text
}

/**
 * Marks what just changed: a mark that stays until the next change, and a flash that fades.
 *
 * @param {Element} target
 */
export function flash(target) {
  target.classList.add('changed')
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) return
  target.animate([{ backgroundColor: 'var(--flash)', offset: 0 }], { duration: 1_400, easing: 'ease-out' })
}
