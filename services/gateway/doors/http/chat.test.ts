import Fastify from 'fastify'
import { addChat, readChat } from './chat.ts'
import { readLibrary } from './library.ts'
import { readPage } from './page.ts'
import { closeServed, serve } from './test-support.ts'

const chat = readChat()

afterEach(closeServed)

test('/chat is the page, and nothing but what the gateway serves may run or load in it', async () => {
  const app = Fastify()
  addChat(app, chat)
  const get = await serve(app)
  const response = await get('/chat')
  expect(response.status).toBe(200)
  expect(String(response.body)).toContain('<title>Keycast chat</title>')
  expect(String(response.headers['content-security-policy'])).not.toContain('unsafe')
  const html = String(chat.get('/chat')?.body)
  expect(html).not.toMatch(/<script(?![^>]* src="\/)/)
  expect(html).not.toMatch(/<style|\sstyle=|\son[a-z]+=/)
})

test('whatever a file of the chat loads is served', () => {
  const served = new Set([...chat.keys(), ...readPage().keys(), ...readLibrary().keys()])
  for (const [path, { body, type }] of chat) {
    const text = String(body)
    const loaded = type.startsWith('text/html')
      ? [...text.matchAll(/(?:src|href)="([^"]+)"/g)]
      : [...text.matchAll(/^import .*'([./][^']+)'$/gm)]
    for (const [, target] of loaded) {
      const { pathname } = new URL(target, `http://host${path}`)
      expect([path, pathname, served.has(pathname)]).toEqual([path, pathname, true])
    }
  }
})
