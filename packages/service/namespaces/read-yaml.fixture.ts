// Reads texts as keycast.yaml, for the tests of its schemas.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NamespacesError, readNamespaces } from './namespaces.ts'

export let folder: string

/** Makes the folder for the tests of a file. To be called by each that reads. */
export function useFolder() {
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'keycast-namespaces-'))
  })
  afterAll(() => rmSync(folder, { recursive: true }))
}

export const read = (
  yaml: string,
  env: NodeJS.ProcessEnv = {},
  options: { headers?: boolean; authorize?: boolean } = {},
) => {
  const path = join(folder, 'keycast.yaml')
  writeFileSync(path, yaml)
  return readNamespaces({ path, env, ...options })
}

/** One namespace "a" with the given fields. */
export const readOne = (fields: string, env?: NodeJS.ProcessEnv) => {
  const lines = fields.split('\n').map(line => `    ${line}`)
  const namespace = read(`namespaces:\n  a:\n${lines.join('\n')}\n`, env).fetched.get('a')
  if (!namespace) throw new Error('no namespace "a"')
  return namespace
}

export const minimal = 'source: http\nurl: http://h/{id}'

export const problemsOf = (reading: () => unknown) => {
  try {
    reading()
  } catch (error) {
    if (error instanceof NamespacesError) return error.problems
    throw error
  }
  throw new Error('the file was accepted')
}
