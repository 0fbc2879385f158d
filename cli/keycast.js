#!/usr/bin/env node
// npx keycast, the command of operators: on the Node that npm brought where this one is too old.
import './own-node.js'

await import('../packages/service/node-24.js')
await import('./keycast.ts')
