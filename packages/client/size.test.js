// The client's size in a page: bundled, minified, and compressed as a server would.
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'

/** All of it without the reader of deltas, and with it. */
const CORE_BYTES_MAX = 6_000
const WHOLE_BYTES_MAX = 6_800

/** @param {string[]} [without] modules left out */
async function bundledBytes(without = []) {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('keycast.js', import.meta.url))],
    bundle: true,
    minify: true,
    format: 'esm',
    write: false,
    external: without,
  })
  return gzipSync(outputFiles[0].contents, { level: 9 }).length
}

test('the client is small', async () => {
  const sizes = { core: await bundledBytes(['./delta.js', './version.js']), whole: await bundledBytes() }
  expect(sizes.core).toBeLessThanOrEqual(CORE_BYTES_MAX)
  expect(sizes.whole).toBeLessThanOrEqual(WHOLE_BYTES_MAX)
  expect(sizes.whole).toBeGreaterThan(sizes.core)
})
