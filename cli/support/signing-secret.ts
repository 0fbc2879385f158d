// The secret that signs tokens for trying on this host: made once beside the code, in a folder that git ignores.
import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'

export const signingSecretFile = fileURLToPath(new URL('../../.keycast/jwt-secret', import.meta.url))

/**
 * Makes the file where it is missing.
 *
 * @returns its path
 * @throws {Error} if it cannot be written
 */
export function ensureSigningSecret(file: string = signingSecretFile): string {
  mkdirSync(dirname(file), { recursive: true })
  // Linked into place when it is whole: of two that start at once one makes the file, and both use that.
  const written = `${file}.${process.pid}`
  writeFileSync(written, `${randomBytes(48).toString('base64url')}\n`, { mode: 0o400, flush: true })
  try {
    linkSync(written, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(written)
  }
  return file
}
