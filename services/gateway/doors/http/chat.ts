// Serves the example of a chat at `/chat`, where it is switched on: it is no part of a gateway, so its files may be missing.
import type { FastifyInstance } from 'fastify'
import { type Assets, addAssets } from './assets.ts'
import { readFolder, securityHeaders } from './page.ts'

const chatFolder = new URL('../../../../examples/chat/', import.meta.url)

export function readChat(): Assets {
  return readFolder(chatFolder, { index: '/chat', prefix: '/chat/' })
}

export function addChat(app: FastifyInstance, chat: Assets = readChat()) {
  addAssets(app, chat, securityHeaders)
}
