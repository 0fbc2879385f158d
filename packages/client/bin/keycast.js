#!/usr/bin/env node
// Starts the keycast command in a real process: its arguments, output and WebSocket.
import { connect } from '../keycast.js'
import { runCommand } from './command.js'
import { findWebSocket } from './websocket.js'

// A reader such as `head` stops early; that is no failure.
process.stdout.on('error', () => process.exit())

/** A gateway that does not answer the close would keep the process for as long as it lives. */
const CLOSING_MS = 2_000

process.exitCode = await runCommand(process.argv.slice(2), {
  open: async url => connect(url, { token: process.env.KEYCAST_TOKEN, WebSocket: await findWebSocket() }),
  out: process.stdout,
  err: process.stderr,
  onInterrupt(stop) {
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop)
  },
})
setTimeout(() => process.exit(), CLOSING_MS).unref()
