#!/usr/bin/env node
// npm start: the whole system on this host, in the foreground. Checks what it needs before it loads the rest, which would
// fail with an error that says less.
import '../packages/service/node-24.js'

// Before all else, for it reads which process started this one.
await import('./start/orphan.ts')
await import('./start/main.ts').catch(error => {
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  console.error(`${error.message}\nInstall what Keycast needs first: npm ci`)
  process.exit(1)
})
