// The documents against the repository: every link leads somewhere, every path named is there, no line is too long.
import { dirname, normalize } from 'node:path/posix'
import { anchorsOf, filesOf, LINE_CHARACTERS_MAX, linksOf, pathsOf, read, sentencesOf, wrap } from './markdown.ts'

const files = filesOf()
const pages = files.filter(file => file.endsWith('.md'))
const folders = [...new Set(files.filter(file => file.includes('/')).map(file => file.split('/')[0]))]

/** Made by a run or an operator: named in the documents, not in the repository. */
const elsewhere = [
  /^docker-compose\.override\.yml$/,
  /^report\.html$/,
  /^both\.html$/,
  /^proxy\/run\b/,
  /^clients\/python\/\.venv\b/,
  /^loadtest\/results\b/,
  /(^|\/)local\//,
]

/** @param path may end in `/`, and may hold `*` */
function exists(path: string) {
  if (!path.includes('*'))
    return files.includes(path) || files.some(file => file.startsWith(`${path.replace(/\/$/, '')}/`))
  const pattern = new RegExp(`^${path.replaceAll('.', '\\.').replaceAll('*', '[^/]*')}`)
  return files.some(file => pattern.test(file))
}

describe.each(pages)('%s', page => {
  const text = read(page)

  test('every link leads to a file, and to a heading of it', () => {
    const broken = linksOf(text).filter(target => {
      const [path, anchor] = target.split('#')
      const file = path === '' ? page : normalize(`${dirname(page)}/${path}`)
      if (!exists(file)) return true
      return anchor !== undefined && !anchorsOf(read(file)).includes(anchor)
    })
    expect(broken).toEqual([])
  })

  test('every path in code is one of the repository', () => {
    const unknown = pathsOf(text, folders).filter(path => {
      if (elsewhere.some(pattern => pattern.test(path))) return false
      // From the root, from the page's own folder, or the end of a path that the page has named before.
      if (exists(path) || exists(normalize(`${dirname(page)}/${path}`))) return false
      return !files.some(file => file.endsWith(`/${path}`) || file.includes(`/${path.replace(/\/$/, '')}/`))
    })
    expect(unknown).toEqual([])
  })

  test('every listing ends: what follows one that does not is shown as code, and no other test reads it', () => {
    expect([...text.matchAll(/^ *```/gm)].length % 2).toBe(0)
  })

  test(`no line is longer than ${LINE_CHARACTERS_MAX} characters`, () => {
    const long = text.split('\n').flatMap((line, index) => {
      const characters = [...line].length
      return characters > LINE_CHARACTERS_MAX ? [`line ${index + 1}: ${characters} characters`] : []
    })
    expect(long).toEqual([])
  })
})

test('no sentence stands on two pages: one of them has it, the other links there', () => {
  const on = new Map<string, string>()
  const twice = pages.flatMap(page =>
    sentencesOf(read(page))
      .filter(sentence => sentence.split(' ').length >= 8)
      .flatMap(sentence => {
        const other = on.get(sentence) ?? page
        on.set(sentence, other)
        return other === page ? [] : [`${other}, ${page}: ${sentence}`]
      }),
  )
  expect(twice).toEqual([])
})

test('docs/README.md leads to every page of docs/', () => {
  const index = linksOf(read('docs/README.md')).map(target => normalize(`docs/${target.split('#')[0]}`))
  const inDocs = pages.filter(page => page.startsWith('docs/') && page !== 'docs/README.md')
  expect(inDocs.filter(page => !index.includes(page))).toEqual([])
})

test('every page that code, configuration or a script names is there', () => {
  const named = files
    .filter(file => /\.(js|ts|cjs|ya?ml|sh|template|css|html)$/.test(file) && !/\.test\.[jt]s$/.test(file))
    .flatMap(file =>
      [...read(file).matchAll(/\b((?:docs|monitoring|loadtest|proxy)\/[\w/-]*\.md)\b/g)].map(([, page]) => page),
    )
  expect(named.filter(page => !exists(page))).toEqual([])
})

test('a link without a target, a heading that is gone and a comment in a listing are told apart', () => {
  const page =
    '# One\n\n## Two words, `code`\n\n## One\n\n```\n# no heading\n[x](no-link.md)\n```\n[a](b.md#c) [d](https://e)\n'
  expect(anchorsOf(page)).toEqual(['one', 'two-words-code', 'one-1'])
  expect(linksOf(page)).toEqual(['b.md#c'])
})

test('sentences are those of paragraphs and lists, over line breaks', () => {
  const page = '# A heading.\n\nOne [link](a.md#b)\nis here. Another: it is.\n\n- An item.\n  Two.\n\n| a | cell. |\n'
  expect(sentencesOf(page)).toEqual(['One [link] is here.', 'Another:', 'it is.', 'An item.', 'Two.'])
})

test('of the words in code, those that read as paths are taken', () => {
  const page =
    'Run `node scripts/start.js KEY`, read `hub.ts`, not `a/b` or `keycast.v1.json`.\n\n```\ncat docs/x.md # y.md\n```\n'
  expect(pathsOf(page, ['scripts', 'docs'])).toEqual(['scripts/start.js', 'hub.ts', 'docs/x.md'])
})

test('a paragraph is broken before the word that does not fit, and a word too long stands alone', () => {
  const [word, long] = ['x'.repeat(60), 'y'.repeat(130)]
  expect(wrap(`${word} ${'x'.repeat(59)} ${long} z`, '  ')).toBe(`${word} ${'x'.repeat(59)}\n  ${long}\n  z`)
})
