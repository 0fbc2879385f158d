#!/usr/bin/env node
// A plain HTTP server, as Node's own documentation begins: every path has the same small value.
import { createServer } from 'node:http'
import { documentOf, readArguments } from './content.ts'
import { serve } from './serve.ts'

const { bytes, ...listening } = readArguments({ name: 'http', about: 'Answers every request with the same JSON.' })
const value = JSON.stringify(documentOf(bytes))

serve(listening, '/', () => ({
  server: createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(value) })
    response.end(value)
  }),
}))
