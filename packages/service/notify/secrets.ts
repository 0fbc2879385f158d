// The secrets that sign calls: files, read again now and then, so that a secret is replaced without a restart.
import { readFile } from 'node:fs/promises'

/** How often a file is read again. */
const FILE_MS = 5_000

/** A shorter one could be guessed from a call and its signature. */
const CHARACTERS_MIN = 16

export type Secrets = ReturnType<typeof createSecrets>

interface Held {
  secret: string | undefined
  readAt: number
  why: string
}

interface Deps {
  now: () => number
  read?: (path: string) => Promise<string>
}

export function createSecrets({ now, read = path => readFile(path, 'utf8') }: Deps) {
  const held = new Map<string, Held>()

  async function readAgain(path: string): Promise<Held> {
    const known = held.get(path)
    if (known && now() - known.readAt < FILE_MS) return known
    // A secret stands while its file cannot be read: it may be about to be replaced.
    const next: Held = { secret: known?.secret, readAt: now(), why: '' }
    try {
      const secret = (await read(path)).trim()
      if (secret.length >= CHARACTERS_MIN) next.secret = secret
      else next.why = `${path} holds no secret of ${CHARACTERS_MIN} characters or more`
    } catch (error) {
      next.why = `${path} cannot be read (${(error as NodeJS.ErrnoException).code})`
    }
    held.set(path, next)
    return next
  }

  return {
    /** @throws {Error} where there is none: nothing is sent unsigned */
    async of(paths: string[]): Promise<string[]> {
      const all = await Promise.all(paths.map(readAgain))
      const secrets = all.flatMap(({ secret }) => secret ?? [])
      if (secrets.length === 0) throw new Error(all.map(({ why }) => why).join(', '))
      return secrets
    },
  }
}
