#!/usr/bin/env node
// The keycast command: see what a gateway serves, from a terminal or in a pipe.
import { connect } from '../keycast.js'
import { runCommand } from './command.js'
import { findWebSocket } from './websocket.js'

// Whoever reads may have read enough, as `head` does.
process.stdout.on('error', () => process.exit())

process.exitCode = await runCommand(process.argv.slice(2), {
  open: async url => connect(url, { WebSocket: await findWebSocket() }),
  out: process.stdout,
  err: process.stderr,
  onInterrupt: stop => process.once('SIGINT', stop),
})
