// Reads a YAML file, and knows the line of each field, so that an error can name it.
import { readFileSync } from 'node:fs'
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'

type LineAt = (path: (string | number)[]) => number

/** Far above what a configuration has. A map within itself, by an alias, would be read without end. */
const DEPTH_MAX = 128

/** One mistake leads to others: a list that does not end made thousands. */
const FAULTS_MAX = 10

/**
 * The parser's words, but where they speak to a program, of its stack's end, which it reports as any other fault, or
 * quote the file: a secret that begins with ! or | is a fault.
 */
function wordsOf({ code, message }: { code?: string; message: string }) {
  if (code === 'MULTIPLE_DOCS') return 'begins a second document: take the line --- away'
  return message.replace('Maximum call stack size exceeded', 'nested too deeply').replace(/(?<=[\w)]): .*/s, '')
}

/**
 * @param refuse makes the error for a file that cannot be used
 * @param read its text, where that was read already
 */
export function readYaml(
  path: string,
  refuse: (problems: string[]) => Error,
  read?: string,
): { value: unknown; lineAt: LineAt } {
  let text
  try {
    text = read ?? readFileSync(path, 'utf8')
  } catch (error) {
    throw refuse([`the file cannot be read (${(error as NodeJS.ErrnoException).code})`])
  }
  const lineCounter = new LineCounter()
  // Without prettyErrors, which show the text: it may hold a secret.
  const document = parseDocument(text, { lineCounter, prettyErrors: false })
  const faults = [...document.errors, ...document.warnings]
  if (faults.length > 0) {
    const lines = faults.map(fault => `line ${lineCounter.linePos(fault.pos[0]).line}: ${wordsOf(fault)}`)
    throw refuse([...new Set(lines)].slice(0, FAULTS_MAX))
  }
  let value
  try {
    value = document.toJS()
  } catch (error) {
    // An alias without its anchor is only found here.
    throw refuse([wordsOf(error as Error)])
  }
  if (isTooDeep(value))
    throw refuse([`the file is nested deeper than ${DEPTH_MAX}, or an alias stands for what is around it`])
  return { value, lineAt: field => lineOf(document, field, lineCounter) }
}

/** Level by level: a value that holds itself has levels without end. */
function isTooDeep(value: unknown) {
  let level = new Set([value])
  for (let depth = 0; level.size > 0; depth++) {
    if (depth > DEPTH_MAX) return true
    const next = new Set<unknown>()
    for (const each of level) {
      if (typeof each === 'object' && each !== null) for (const inner of Object.values(each)) next.add(inner)
    }
    level = next
  }
  return false
}

/** The line of a field, or that of the field around it. */
function lineOf(document: Document.Parsed, path: (string | number)[], lineCounter: LineCounter) {
  let node: unknown = document.contents
  let line = 1
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document)
    let marker: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step))
      marker = pair?.key
      node = pair?.value
    } else if (isSeq(node)) {
      node = node.items[Number(step)]
      marker = node
    } else break
    if (!isNode(marker) || !marker.range) break
    line = lineCounter.linePos(marker.range[0]).line
  }
  return line
}
