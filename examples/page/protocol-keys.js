// A browser gets packages/protocol/keys.js itself under this name: see services/gateway/doors/http/page.ts.
export * from '../../packages/protocol/keys.js'
