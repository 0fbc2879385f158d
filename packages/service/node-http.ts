// Node's http, as `require` gives it. An `import` reads each name that node:http exports, and one of them loads all of
// Node's fetch: 50 ms of CPU time at every start.

export const http = process.getBuiltinModule('node:http')
