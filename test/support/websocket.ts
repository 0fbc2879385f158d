// The WebSocket that a program in Node has: its own from Node 22 on, before that the one of the package `ws`.
import { WebSocket as PackagedWebSocket } from 'ws'

/** @type {typeof PackagedWebSocket} */
export const WebSocket = /** @type {any} */ (globalThis).WebSocket ?? PackagedWebSocket
