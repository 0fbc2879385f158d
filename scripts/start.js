#!/usr/bin/env node
// npm start: the whole system on this host, in the foreground. Checks what it needs before it loads the rest, which would
// fail with an error that says less.
import './start/orphan.ts'

const NODE_MIN = [20, 18, 1]

const own = process.versions.node.split('.').map(Number)
const differing = NODE_MIN.findIndex((part, index) => own[index] !== part)
if (differing !== -1 && own[differing] < NODE_MIN[differing]) {
  refuse(`Keycast needs Node ${NODE_MIN.join('.')} or later; this is ${process.versions.node}.`)
}

import('./start/main.ts').catch(error => {
  if (error.code === 'ERR_MODULE_NOT_FOUND') refuse(`${error.message}\nInstall what Keycast needs first: npm ci`)
  throw error
})

/** @param {string} why */
function refuse(why) {
  console.error(why)
  process.exit(1)
}
