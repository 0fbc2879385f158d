// A browser gets packages/protocol/codes.js itself under this name: see services/gateway/doors/http/page.ts.
export * from '../../packages/protocol/codes.js'
