// Reads the repository's Markdown: the files there are, their headings, links and the paths they name.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Above it a line of Markdown is hard to read beside code, and to review. */
export const LINE_CHARACTERS_MAX = 120

/** Folders that git ignores: what is in them differs from one checkout to the next. */
const ignored = new Set([
  '.git',
  '.keycast',
  '.pm2',
  '.venv',
  'coverage',
  'node_modules',
  'loadtest/results',
  'proxy/run',
])

/** Every file of the repository, as a path from its root. */
export function filesOf(folder = ''): string[] {
  return readdirSync(`${root}${folder}`, { withFileTypes: true }).flatMap(entry => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (ignored.has(path) || ignored.has(entry.name)) return []
    return entry.isDirectory() ? filesOf(path) : [path]
  })
}

/** @param path from the root */
export function read(path: string) {
  return readFileSync(`${root}${path}`, 'utf8')
}

/** The anchors that GitHub gives the headings of a page, in their order. */
export function anchorsOf(page: string) {
  const seen = new Map<string, number>()
  return [...proseOf(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) => {
    const text = heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').toLowerCase()
    const slug = text.replaceAll(/[^\p{Letter}\p{Number} _-]/gu, '').replaceAll(' ', '-')
    const times = seen.get(slug) ?? 0
    seen.set(slug, times + 1)
    return times === 0 ? slug : `${slug}-${times}`
  })
}

/** The targets of a page's links that lead to this repository, as they are written. */
export function linksOf(page: string) {
  const prose = proseOf(page).replaceAll(/`[^`]*`/g, '')
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)|\b(?:src|href)="([^"]+)"/g)].map(([, link, html]) => link ?? html)
  return targets.filter(target => !/^[a-z]+:/.test(target))
}

/** A page's fenced listings, without their fences. */
export function listingsOf(page: string) {
  return [...page.matchAll(/^ *```.*\n([\s\S]*?)^ *```/gm)].map(([, code]) => code)
}

/** The sentences of a page's paragraphs and lists. Links count by their words; headings, tables and listings do not. */
export function sentencesOf(page: string) {
  return proseOf(page)
    .replaceAll(/\]\([^)]*\)/g, ']')
    .split(/\n\s*\n|\n(?=[|#]|- |\d+\. )/)
    .filter(paragraph => !/^\s*[|#]/.test(paragraph))
    .flatMap(paragraph => paragraph.replaceAll(/\s+/g, ' ').split(/(?<=[.:;!?]) /))
    .map(sentence => sentence.replace(/^(-|\d+\.) /, ''))
}

/**
 * The words in a page's code, inline and fenced, that read as paths of files or folders.
 *
 * @param folders at the root of the repository
 */
export function pathsOf(page: string, folders: string[]) {
  const inline = [...proseOf(page).matchAll(/`([^`]+)`/g)].map(([, code]) => code)
  const fenced = listingsOf(page)
  const words = [
    ...inline.flatMap(code => code.split(/[\s,;()"'=]+/)),
    // In a listing only what begins at a folder of the repository: the rest may be anybody's.
    ...fenced.flatMap(code => code.split(/[\s,;()"'=]+/)).filter(word => folders.includes(word.split('/')[0])),
  ]
  return words.map(word => word.replace(/[:.]$/, '')).filter(word => isPath(word, folders))
}

function isPath(word: string, folders: string[]) {
  if (!/^[\w.*@-]+(\/[\w.*@-]+)*\/?$/.test(word)) return false
  if (word.includes('/') && folders.includes(word.split('/')[0])) return true
  return /\w\.(js|ts|cjs|md|ya?ml|sh|css|html|template)$/.test(word)
}

/** A page without its fenced listings: a `#` in one is a comment. */
function proseOf(page: string) {
  return page.replaceAll(/^```[\s\S]*?^```/gm, '')
}

/**
 * A paragraph or an item of a list, broken into lines that the check of {@link LINE_CHARACTERS_MAX} accepts.
 *
 * @param text without line breaks
 * @param indent of all lines but the first
 */
export function wrap(text: string, indent = '') {
  const [first, ...words] = text.split(' ')
  const lines = [first]
  for (const word of words) {
    const line = `${lines[lines.length - 1]} ${word}`
    if ([...line].length <= LINE_CHARACTERS_MAX) lines[lines.length - 1] = line
    else lines.push(`${indent}${word}`)
  }
  return lines.join('\n')
}
