// A browser gets packages/protocol/keys.js itself under this name: see ../http/page.js.
export * from '../../../packages/protocol/keys.js'
