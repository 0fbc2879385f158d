// The client as others install it: what `npm pack` makes, in an empty project, without a network.
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newFolder } from '../support/cleanup.ts'
import { run } from '../support/run.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

let project: string
let packed: string[]

beforeAll(async () => {
  project = newFolder()
  const cwd = join(root, 'packages/client')
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', project], { cwd })
  const [{ filename, files }] = JSON.parse(stdout.slice(stdout.indexOf('[')))
  packed = files.map(({ path }: { path: string }) => path)
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }')
  await run('npm', ['install', '--offline', `./${filename}`], { cwd: project })
})

test('it holds what runs and its declarations, and neither tests nor a dependency', () => {
  expect(packed.filter(path => /test|transcripts|tsconfig|browser-files/.test(path))).toEqual([
    'testing-messages.js',
    'testing-rooms.js',
    'testing.js',
    'types/testing-messages.d.ts',
    'types/testing-rooms.d.ts',
    'types/testing.d.ts',
  ])
  for (const path of packed.filter(path => path.endsWith('.js') && !path.startsWith('bin/'))) {
    expect(packed).toContain(`types/${path.replace(/js$/, 'd.ts')}`)
  }
  const installed = readdirSync(join(project, 'node_modules')).filter(name => !name.startsWith('.'))
  expect(installed).toEqual(['@keycast'])
})

test('it runs in plain Node', async () => {
  const program = `
    import { connect, KeycastError } from '@keycast/client'
    import { createFakeKeycast } from '@keycast/client/testing'
    const fake = createFakeKeycast()
    fake.set('a:1', { n: 1 })
    for await (const { value } of fake.keycast.value('a:1')) {
      console.log(JSON.stringify([value, typeof connect, new KeycastError({ code: 'closed', message: 'm' }).code]))
      break
    }
    fake.keycast.close()`
  writeFileSync(join(project, 'program.js'), program)
  const { stdout } = await run(process.execPath, ['program.js'], { cwd: project })
  expect(JSON.parse(stdout)).toEqual([{ n: 1 }, 'function', 'closed'])
})

test('it brings the command', async () => {
  const { stdout } = await run(join(project, 'node_modules/.bin/keycast'), ['--help'])
  expect(stdout).toContain('Usage: keycast watch KEY...')
})

/** Runs a strict TypeScript over files of the project. */
async function check(compilerOptions: object, files: string[]) {
  const strict = { strict: true, noEmit: true, target: 'es2022', lib: ['es2023', 'dom'], types: [] }
  const config = { compilerOptions: { ...strict, ...compilerOptions }, files }
  writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const { stdout } = await run(process.execPath, [tsc, '-p', '.'], { cwd: project }).catch(error => error)
  return stdout
}

/** Lends the project the repository's packages that its code imports beside the client. */
function lend(names: string[]) {
  mkdirSync(join(project, 'node_modules/@types'), { recursive: true })
  for (const name of names) symlinkSync(join(root, 'node_modules', name), join(project, 'node_modules', name))
}

test('its types pass a strict TypeScript, and find mistakes', async () => {
  lend(['@types/react', 'csstype'])
  const program = `
    import { connect, KeycastError, TokenRefused, type Keycast, type Message, type ValueState } from '@keycast/client'
    import { createMessageList } from '@keycast/client/message-list'
    import { useRoom, useValue } from '@keycast/client/react'
    import { connect as connectToValues } from '@keycast/client/values'
    import { createFakeKeycast } from '@keycast/client/testing'

    interface Conversation { messages: string[] }
    const keycast: Keycast = connect('wss://example.com/ws', { WebSocket })
    const doc = keycast.value<Conversation>('conversation:42')
    const off: () => void = doc.on('change', ({ value, stale, error }) => {
      const first: string | undefined = value?.messages[0]
      const code: string | undefined = error?.code
      if (stale) console.log(first, code, stale.askedAt.toFixed(), stale.code)
    })
    off()
    export async function run(): Promise<number> {
      for await (const state of doc) { const known: ValueState<Conversation> = state; console.log(known.version); break }
      try {
        const { length } = await keycast.get<string>('text:1', { signal: AbortSignal.timeout(1_000) })
        return length
      } catch (error) {
        if (error instanceof KeycastError) return error.retryAfterMs ?? 0
        throw error
      }
    }
    keycast.on('state', state => { if (state.name === 'waiting') console.log(new Date(state.retryAt), state.reason) })
    const fake: { keycast: Keycast } = createFakeKeycast()
    export const title = () => useValue<Conversation>('conversation:42').value?.messages.length
    fake.keycast.close()
    interface Said { text: string }
    const room = keycast.room<Said>('room:42', { last: 50, presence: true })
    room.on('message', ({ data, position, from = 'somebody' }) => console.log(data.text, position.seq, from))
    room.on('gap', ({ reason }) => { if (reason === 'slow') console.log(room.position?.epoch) })
    room.members.on('change', ({ members }) => console.log(members?.map(({ name, tabs }) => [name, tabs])))
    export async function talk(): Promise<Message<Said>[]> {
      const { position, duplicate } = await room.publish({ text: 'hi' }, { deadlineMs: 1_000 })
      for await (const item of room) { if (item.type === 'message') console.log(item.data.text, duplicate); break }
      return (await room.history({ before: position, limit: 10 })).messages
    }
    const list = createMessageList<Said>(keycast, 'room:42')
    list.on('change', ({ messages, failed }) => console.log(messages[0]?.data.text, failed[0]?.error.code))
    export const Talk = () => useRoom<Said>('room:42').messages[0]?.data.text
    connectToValues('wss://example.com/ws', { token: async () => { throw new TokenRefused('signed out') } }).close()
    // @ts-expect-error a message has a text
    room.publish({ words: 'hi' })
    // @ts-expect-error there are no rooms here
    connectToValues('wss://example.com/ws').room('room:42')
    // @ts-expect-error there is no such event
    doc.on('changed', () => {})
    // @ts-expect-error a count is no string
    const wrong: string = keycast.value<number>('count:1').state.value
    // @ts-expect-error the state cannot be set
    doc.state = wrong
    // @ts-expect-error no code is called that
    createFakeKeycast().fail('a:1', 'broken')
  `
  writeFileSync(join(project, 'program.ts'), program)
  const strictest = { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }
  for (const kind of [{ module: 'nodenext' }, { module: 'esnext', moduleResolution: 'bundler' }]) {
    expect(await check({ ...strictest, ...kind }, ['program.ts'])).toBe('')
  }
})

test('the examples of the pages on the client are right', async () => {
  lend(['ws', '@types/ws', '@types/node', 'undici-types'])
  const pages = ['client', 'client-reference', 'client-recipes']
  const text = pages.map(page => readFileSync(join(root, `docs/${page}.md`), 'utf8')).join('\n')
  const blocks = [...text.matchAll(/^```js\n(.*?)^```/gms)].map(([, code]) => code)
  expect(blocks.length).toBeGreaterThan(4)
  // Stand-ins for packages that are not installed here.
  const vue =
    'export const onScopeDispose: (end: () => void) => void\nexport const shallowRef: <T>(value: T) => { value: T }\n'
  const query = `export const useQuery: (options: object) => unknown
    export const useQueryClient: () => { setQueryData: (key: unknown[], value: unknown) => void }\n`
  writeFileSync(
    join(project, 'stand-ins.d.ts'),
    `declare module 'vue' {\n${vue}}\ndeclare module '@tanstack/react-query' {\n${query}}\n`,
  )
  const names = blocks.map((code, n) => {
    writeFileSync(join(project, `example-${n}.js`), code)
    return `example-${n}.js`
  })
  const options = { allowJs: true, checkJs: true, module: 'nodenext', types: ['node'], skipLibCheck: true }
  expect(await check(options, [...names, 'stand-ins.d.ts'])).toBe('')
})
