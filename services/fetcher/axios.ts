// axios as `require` gives it: one file. An `import` loads 67 modules, and Node's fetch with them (packages/service/node-http.ts).
import { createRequire } from 'node:module'

export const axios: typeof import('axios').default = createRequire(import.meta.url)('axios')
