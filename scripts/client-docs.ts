#!/usr/bin/env node
// Writes docs/client-api.md: every export of the client library as its type declarations have it.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isMain, runCommand } from '../cli/support/command.ts'
import { wrap } from './docs/markdown.ts'

const usage = `Usage: node scripts/client-docs.js

Writes docs/client-api.md from the types of packages/client.`

const root = fileURLToPath(new URL('..', import.meta.url))
const page = join(root, 'docs/client-api.md')

const head = `# Client library: every export

The types of \`@keycast/client\`, as editors show them. Examples, and what each export is for, are in
[client.md](client.md).

An export that stands under an entry before is not repeated.

Written by \`node scripts/client-docs.js\` from \`packages/client\`; a test compares the two.
`

interface Declaration {
  name: string
  /** Its comment, without tags that say the types again. */
  about: string
  text: string
}

/** The part of a package.json that is read here. */
interface Manifest {
  exports: Record<string, { types: string }>
}

/** The page as the sources have it now. */
export function clientApi() {
  const folder = mkdtempSync(join(tmpdir(), 'keycast-types-'))
  try {
    run('tsc', ['-p', 'packages/client/tsconfig.types.json', '--outDir', folder])
    const manifest: Manifest = JSON.parse(readFileSync(join(root, 'packages/client/package.json'), 'utf8'))
    const keycast = resultOf(named('connect', join(folder, 'keycast/connect.d.ts')))
    /** Of the entries before. */
    const printed = new Set<string>()
    const entries = Object.entries(manifest.exports).map(([path, { types }]) => {
      const declarations = exportsOf(join(folder, types.replace('./types/', ''))).filter(
        ({ text }) => !printed.has(text),
      )
      for (const { text } of declarations) printed.add(text)
      const code = declarations.map(each => withoutTypes(each.about + withName(each, keycast))).join('\n\n')
      return `\n## @keycast/client${path.slice(1)}\n\n\`\`\`ts\n${formatted(code)}\`\`\`\n`
    })
    return head + entries.join('')
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** @param program of node_modules */
function run(program: string, args: string[], input?: string) {
  return execFileSync(join(root, 'node_modules/.bin', program), args, { cwd: root, input, encoding: 'utf8' })
}

function formatted(code: string) {
  return run('biome', ['format', '--stdin-file-path=client-api.d.ts'], code).replaceAll(
    /^( *)\* .*/gm,
    (line, indent) => wrap(line, `${indent}* `),
  )
}

/** The exports of a file, in order. */
function exportsOf(file: string): Declaration[] {
  const source = readFileSync(file, 'utf8')
  return [
    ...source.matchAll(/^export (?:\{ (?<list>[^}]*) \} from '(?<from>[^']*)'|(?:type|declare \w+) (?<name>\w+))/gm),
  ]
    .flatMap(({ groups = {} }) => {
      const { list, from, name } = groups
      return list ? list.split(', ').map(each => named(each, declarationsAt(from, file))) : [named(name, file)]
    })
    .sort((one, other) => Number(isType(one)) - Number(isType(other)))
}

function isType({ text }: Declaration) {
  return text.startsWith('type ')
}

/** @param module as imported @param file that imports it */
function declarationsAt(module: string, file: string) {
  return resolve(dirname(file), module.replace(/\.js$/, '.d.ts'))
}

/** A declaration as the file has it that it comes from. */
function named(name: string, file: string): Declaration {
  const source = readFileSync(file, 'utf8')
  const alias = new RegExp(`^export type ${name}(?:<.*?>)? = import\\('([^']*)'\\)\\.(\\w+)(?:<\\w+>)?;$`, 'm').exec(
    source,
  )
  if (alias) return named(alias[2], declarationsAt(alias[1], file))
  // The content of a declaration is indented; it ends with a line that is not, by `;` or a class's bracket.
  const own = new RegExp(`^export (?:declare )?(\\w+ ${name}\\b(?:[^\\n]*;|.*?\\n(?:\\S[^\\n]*;|\\})))$`, 'ms').exec(
    source,
  )
  if (!own) throw new Error(`${file} does not declare ${name}`)
  const text = own[1].replaceAll(/import\(['"][^'"]*['"]\)\./g, '')
  return { name, about: aboutOf(name, source.slice(0, own.index), source), text }
}

/** A function's comment stands before it, a type's has its name in it. */
function aboutOf(name: string, before: string, source: string) {
  const typedef = new RegExp(`@typedef [\\s\\S]*\\b${name}\\s*(?:\\*/|\\n)`)
  const comment =
    /(\/\*\*(?:(?!\/\*\*).)*?\*\/)\n$/s.exec(before)?.[1] ??
    [...source.matchAll(/^\/\*\*.*?\*\/$/gms)]
      .map(([each]) => each)
      .find(each => typedef.test(each) && each.split('@typedef').length === 2) ??
    ''
  const text = comment
    .replaceAll(/^\/\*\*\s?|\s*\*\/$/g, '')
    .replaceAll(/^ \* ?/gm, '')
    .replaceAll(/^@(?:template|typedef|property|returns)[\s\S]*/gm, '')
    .trim()
  return text && `/**\n${text.replaceAll(/^/gm, ' * ').replaceAll(/ +$/gm, '')}\n */\n`
}

/** The type that a function returns. */
function resultOf({ text }: Declaration) {
  return text.slice(text.indexOf('): ') + 3).replace(/;$/, '')
}

/** A client's type stands at \`Keycast\` alone, by its name everywhere else. */
function withName({ name, text }: Declaration, keycast: string) {
  if (name === 'Keycast') return `type Keycast = ${keycast}`
  return text.replaceAll(
    new RegExp(bare(keycast).split(' ').map(escapeRegExp).join('(?:\\s|/\\*\\*.*?\\*/)+'), 'gs'),
    'Keycast',
  )
}

/** Comments without the types that the declarations have. */
function withoutTypes(code: string) {
  return code
    .replaceAll(/ ?@type \{[^}]*\}/g, '')
    .replaceAll(/(\* @(?:param|returns)) \{(?:[^{}]|\{[^}]*\})*\}/g, '$1')
    .replaceAll(/(\* @param) \[([\w.]+)\]/g, '$1 $2')
    .replaceAll(/^ *\* @(?:template.*|returns|param \S+)\n/gm, '')
    .replaceAll(/ @param \{[^}]*\}+ (\[?\w+\]?)(?: \(.*?\) => void\} \w+)?(?=.*\*\/)/g, ' @param $1')
    .replaceAll(/(?: @param \[?\w+\]?)+(?= \*\/)/g, '')
    .replaceAll(/\n *\*(?=\n *\*\/)/g, '')
    .replaceAll(/^ *\/\*\*\n *\*\/\n/gm, '')
    .replaceAll(/\/\*\*\n\s*\* (.*)\n\s*\*\//g, '/** $1 */')
}

/** Without comments, each space one. */
function bare(text: string) {
  return text
    .replaceAll(/\/\*\*.*?\*\//gs, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
}

function escapeRegExp(text: string) {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&')
}

if (isMain(import.meta.url)) {
  await runCommand({ name: 'client-docs', usage }, () => {
    writeFileSync(page, clientApi())
  })
}
