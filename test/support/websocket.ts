// The WebSocket that a program in Node has: its own from Node 22 on, before that the one of the package `ws`.
import { WebSocket as PackagedWebSocket } from 'ws'

export const WebSocket: typeof PackagedWebSocket = (globalThis as any).WebSocket ?? PackagedWebSocket
