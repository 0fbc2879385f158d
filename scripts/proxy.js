#!/usr/bin/env node
// Says what to do where this Node cannot run TypeScript.
import '../packages/service/node-24.js'

await import('./proxy.ts')
