// Asks a health endpoint and exits with 0 or 1: the health check of the images, which have no curl.
const [url] = process.argv.slice(2)

try {
  const response = await fetch(url, { signal: AbortSignal.timeout(2_000) })
  if (!response.ok) throw new Error(await response.text())
} catch (error) {
  console.error(`${url}: ${/** @type {Error} */ (error).message}`)
  process.exit(1)
}
