// A browser gets packages/protocol/codes.js itself under this name: see ../http/page.ts.
export * from '../../../packages/protocol/codes.js'
