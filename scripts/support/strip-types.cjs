// Lets jest load TypeScript as Node does: types become spaces, so lines and columns of stack traces stay exact.
const { createHash } = require('node:crypto')
const { stripTypeScriptTypes } = require('node:module')

module.exports = {
  /** @param {string} text @param {string} path */
  getCacheKey: (text, path) => createHash('sha256').update(`${process.version}\0${path}\0${text}`).digest('hex'),
  /** @param {string} text */
  process: text => ({ code: stripTypeScriptTypes(text, { mode: 'strip' }) }),
}
