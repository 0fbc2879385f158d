// Serves the example of a chat at `/chat`, where it is switched on: it is no part of a gateway, so its files may be missing.
import { addAssets } from './assets.js'
import { readFolder, securityHeaders } from './page.js'

const chatFolder = new URL('../../../examples/chat/', import.meta.url)

/** @returns {import('./assets.js').Assets} */
export function readChat() {
  return readFolder(chatFolder, { index: '/chat', prefix: '/chat/' })
}

/**
 * @param {import('fastify').FastifyInstance} app
 * @param {import('./assets.js').Assets} [chat]
 */
export function addChat(app, chat = readChat()) {
  addAssets(app, chat, securityHeaders)
}
