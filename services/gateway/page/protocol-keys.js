// A browser gets packages/protocol/keys.js itself under this name: see ../http/page.ts.
export * from '../../../packages/protocol/keys.js'
