// A keycast.yaml of a test.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from './cleanup.ts'

/** A namespace as in keycast.yaml; `source` is http where it is not given. */
export interface NamespaceSettings {
  source?: 'http' | 'journal' | 'pushed'
  url?: string
  batch?: { url: string; max?: number; items: string; id: string }
  method?: 'POST'
  body?: Record<string, unknown>
  refresh?: string | number
  maxAge?: string
  timeout?: string
  maxBytes?: string
  headers?: Record<string, string>
  redirects?: 'same-origin'
  token?: { file: string } | { url: string; client: string; secret: string }
  query?: string[]
  asHeaders?: Record<string, string>
  ids?: { segments: number }
  changes?: { sse: string }
  per?: 'user'
  credentials?: 'viewer'
  authorize?: { url: string; method?: 'HEAD' | 'GET'; keep?: string }
  notify?: { url: string; secretFiles: string[]; timeout?: string; viewers?: boolean; members?: boolean }
  history?: { messages?: number; age?: string; bytes?: string }
  members?: 'named'
  names?: 'unique'
  publish?: 'server' | object
}

/**
 * @param access `null`: the section is left out
 * @returns the path of a keycast.yaml
 */
export function writeConfig(
  namespaces: Record<string, NamespaceSettings>,
  access: object | null = { anonymous: { read: ['*:**'] } },
): string {
  const directory = newFolder()
  const path = join(directory, 'keycast.yaml')
  writeFileSync(path, configText(namespaces, access))
  return path
}

/** JSON, which is YAML. @param access `null`: the section is left out */
export function configText(
  namespaces: Record<string, NamespaceSettings>,
  access: object | null = { anonymous: { read: ['*:**'] } },
): string {
  const entries = Object.entries(namespaces).map(([name, settings]) => [name, { source: 'http', ...settings }])
  return JSON.stringify({ namespaces: Object.fromEntries(entries), ...(access && { access }) })
}
