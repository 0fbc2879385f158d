// A browser gets packages/protocol/codes.js itself under this name: see ../http/page.js.
export * from '../../../packages/protocol/codes.js'
