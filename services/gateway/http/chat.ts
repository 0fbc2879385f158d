// Serves the example of a chat at `/chat`, where it is switched on: it is no part of a gateway, so its files may be missing.
import { addAssets } from './assets.ts'
import { readFolder, securityHeaders } from './page.ts'

const chatFolder = new URL('../../../examples/chat/', import.meta.url)

/** @returns {import('./assets.ts').Assets} */
export function readChat() {
  return readFolder(chatFolder, { index: '/chat', prefix: '/chat/' })
}

/**
 * @param {import('fastify').FastifyInstance} app
 * @param {import('./assets.ts').Assets} [chat]
 */
export function addChat(app, chat = readChat()) {
  addAssets(app, chat, securityHeaders)
}
