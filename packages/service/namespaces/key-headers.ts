// The parameters of a key that are sent to the backend as headers: a viewer's language, a tenant.
import { partsOf } from '@keycast/protocol'
import type { ValueNamespace } from './namespaces.ts'

/** @param id that the namespace admits @returns `undefined` where none is sent so */
export function headersOfKey({ query }: Pick<ValueNamespace, 'query'>, id: string): Record<string, string> | undefined {
  if (!query || !id.includes('?')) return undefined
  const { headers } = query
  const sent = partsOf(id).parameters.filter(([name]) => headers[name] !== undefined)
  return sent.length === 0 ? undefined : Object.fromEntries(sent.map(([name, value]) => [headers[name], value]))
}
