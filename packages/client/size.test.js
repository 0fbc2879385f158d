// The client's size in a page: bundled, minified, and compressed as a server would.
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** The bounds: the core, which shows values, without the reader of deltas; all of it with rooms; and what the fallback adds. */
const CORE_BYTES_MAX = 6_250
const FALLBACK_BYTES_MAX = 3_580
const WHOLE_BYTES_MAX = 11_950

/** @param {string} entry @param {string[]} [without] modules left out */
async function bundledBytes(entry, without = []) {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(entry, import.meta.url))],
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
    external: without,
  })
  return gzipSync(outputFiles[0].contents, { level: 9 }).length
}

test('the client is small', async () => {
  const core = await bundledBytes('keycast/values-only.js', ['./delta.js', './version.js'])
  const whole = await bundledBytes('keycast.js')
  expect(await bundledBytes('keycast/fallback/fallback.js')).toBeLessThanOrEqual(FALLBACK_BYTES_MAX)
  expect(core).toBeLessThanOrEqual(CORE_BYTES_MAX)
  expect(whole).toBeLessThanOrEqual(WHOLE_BYTES_MAX)
  expect(whole).toBeGreaterThan(core)
})
