// On which line of a YAML file a field stands, so that an error can say where to look.
import { isAlias, isMap, isSeq } from 'yaml'

/**
 * The line a field is written on, or that of what holds it.
 *
 * @param {import('yaml').Document.Parsed} document
 * @param {(string | number)[]} path
 * @param {import('yaml').LineCounter} lineCounter
 */
export function lineOf(document, path, lineCounter) {
  /** @type {any} */
  let node = document.contents
  let line = 1
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document)
    /** @type {any} */
    let marker
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => String(/** @type {any} */ (key)?.value) === String(step))
      marker = pair?.key
      node = pair?.value
    } else if (isSeq(node)) {
      node = node.items[Number(step)]
      marker = node
    } else break
    if (!marker?.range) break
    line = lineCounter.linePos(marker.range[0]).line
  }
  return line
}
