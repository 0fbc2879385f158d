// Finds the differences between two JSON values, entry by entry, so that only that is drawn anew and shown as changed.

/** @typedef {{ id: string, label: string, value: unknown }} Entry one member of an object or array */
/** @typedef {{ path: string, kind: 'added' | 'removed' | 'changed', before?: unknown, after?: unknown }} Change */

/** Differences beyond this are counted no further: a value that is new throughout is no list of changes. */
const CHANGES_MAX = 1_000

/** Nesting past this is drawn and compared as one: the stack has an end. */
export const DEPTH_MAX = 200

/** @param {unknown} value @returns {'array' | 'object' | 'string' | 'number' | 'boolean' | 'null'} */
export function kindOf(value) {
  if (value === null || value === undefined) return 'null'
  if (Array.isArray(value)) return 'array'
  return /** @type {'object' | 'string' | 'number' | 'boolean'} */ (typeof value)
}

/** @param {unknown} value @returns {value is object} */
export function isContainer(value) {
  return typeof value === 'object' && value !== null
}

/**
 * Whether two JSON values are equal. Nested ones wait on a list, not on the stack, which has an end.
 *
 * @param {unknown} one
 * @param {unknown} other
 */
export function same(one, other) {
  if (one === other) return true
  /** Pairs that are not one and the same. @type {[any, any][]} */
  const waiting = [[one, other]]
  for (let pair = waiting.pop(); pair; pair = waiting.pop()) {
    const [a, b] = pair
    if (!isContainer(a) || !isContainer(b) || Array.isArray(a) !== Array.isArray(b)) return false
    const names = Object.keys(a)
    if (names.length !== Object.keys(b).length) return false
    for (const name of names) {
      if (!Object.hasOwn(b, name)) return false
      const [left, right] = [/** @type {any} */ (a)[name], /** @type {any} */ (b)[name]]
      if (left !== right) waiting.push([left, right])
    }
  }
  return true
}

/**
 * The members of an object or array. Items of an array that carry an `id` are known by it: a list that drops its first
 * item and gains a last one has two changes, not as many as items.
 *
 * @param {any} container
 * @returns {Entry[]}
 */
export function entriesOf(container) {
  if (!Array.isArray(container)) {
    return Object.entries(container).map(([name, value]) => ({ id: name, label: name, value }))
  }
  const ids = container.map(item => (isContainer(item) ? /** @type {any} */ (item).id : undefined))
  const known =
    ids.every(id => typeof id === 'string' || typeof id === 'number') && new Set(ids).size === container.length
  return container.map((value, index) => ({ id: known ? `id ${ids[index]}` : `${index}`, label: `${index}`, value }))
}

/**
 * The differences between two values, the deepest each.
 *
 * @param {unknown} before
 * @param {unknown} after
 * @returns {Change[]} at most {@link CHANGES_MAX}
 */
export function changesBetween(before, after) {
  /** @type {Change[]} */
  const changes = []
  collect(before, after, '', 0, changes)
  return changes
}

/** @param {unknown} before @param {unknown} after @param {string} path @param {number} depth @param {Change[]} changes */
function collect(before, after, path, depth, changes) {
  if (changes.length >= CHANGES_MAX || same(before, after)) return
  const comparable = isContainer(before) && isContainer(after) && Array.isArray(before) === Array.isArray(after)
  if (!comparable || depth > DEPTH_MAX) {
    changes.push({ path, kind: 'changed', before, after })
    return
  }
  const list = Array.isArray(after)
  const held = new Map(entriesOf(before).map(entry => [entry.id, entry]))
  for (const { id, label, value } of entriesOf(after)) {
    const old = held.get(id)
    held.delete(id)
    if (old) collect(old.value, value, step(path, label, list), depth + 1, changes)
    else if (changes.length < CHANGES_MAX) changes.push({ path: step(path, label, list), kind: 'added', after: value })
  }
  for (const { label, value } of held.values()) {
    if (changes.length >= CHANGES_MAX) return
    changes.push({ path: step(path, label, list), kind: 'removed', before: value })
  }
}

/** @param {string} path @param {string} label @param {boolean} list */
function step(path, label, list) {
  if (list) return `${path}[${label}]`
  if (!/^[A-Za-z_$][\w$]*$/.test(label)) return `${path}[${JSON.stringify(label)}]`
  return path === '' ? label : `${path}.${label}`
}

/**
 * The part in which two texts differ: they share all before it and all after it.
 *
 * @param {string} before
 * @param {string} after
 * @returns {{ start: number, beforeEnd: number, afterEnd: number }}
 */
export function differenceOf(before, after) {
  const shorter = Math.min(before.length, after.length)
  let start = 0
  while (start < shorter && before[start] === after[start]) start += 1
  let tail = 0
  while (tail < shorter - start && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1
  return { start, beforeEnd: before.length - tail, afterEnd: after.length - tail }
}

/**
 * The differences between two texts by line. A line that only moved is none; one that took another's place in the same
 * line is a change of it.
 *
 * @param {string[]} before
 * @param {string[]} after
 * @returns {Change[]} at most {@link CHANGES_MAX}
 */
export function lineChanges(before, after) {
  const [old, fresh] = [new Set(before), new Set(after)]
  /** @type {Change[]} */
  const changes = []
  for (let line = 0; line < Math.max(before.length, after.length) && changes.length < CHANGES_MAX; line += 1) {
    const gone = line < before.length && !fresh.has(before[line])
    const added = line < after.length && !old.has(after[line])
    const path = `line ${line + 1}`
    if (gone && added) changes.push({ path, kind: 'changed', before: before[line], after: after[line] })
    else if (added) changes.push({ path, kind: 'added', after: after[line] })
    else if (gone) changes.push({ path, kind: 'removed', before: before[line] })
  }
  return changes
}

/**
 * A value on one line, cut to a length.
 *
 * @param {unknown} value
 * @param {number} charactersMax
 */
export function inline(value, charactersMax) {
  const text = write(value, charactersMax)
  return text.length > charactersMax ? `${text.slice(0, charactersMax - 1)}…` : text
}

/** @param {unknown} value @param {number} room characters that will be read: no more is written than a little over it @returns {string} */
function write(value, room) {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, room))
  if (!isContainer(value)) return String(value)
  const list = Array.isArray(value)
  const members = list ? value : Object.entries(value)
  let text = list ? '[' : '{ '
  for (const [index, member] of members.entries()) {
    if (text.length > room) return text
    if (index > 0) text += ', '
    text += list ? write(member, room - text.length) : `${member[0]}: ${write(member[1], room - text.length)}`
  }
  return `${text}${list ? ']' : ' }'}`
}
