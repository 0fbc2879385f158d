// The body of a namespace that is asked by POST: JSON with `{id}` in its texts. No id can leave its text.

/** Reads a template, as text or as a map, and returns the function that makes bodies of it. */
export function readBodyTemplate(
  written: string | Record<string, unknown>,
): { bodyFor: (id: string) => string; hasId: boolean } | { problem: string } {
  const template = typeof written === 'string' ? written : JSON.stringify(written)
  try {
    // Outside of a text no JSON has such a word, so `{id}` cannot stand there.
    JSON.parse(template.replaceAll('{id}', 'id'))
  } catch {
    return { problem: 'must be JSON, with {id} in its texts alone' }
  }
  return {
    bodyFor: id => template.replaceAll('{id}', () => JSON.stringify(id).slice(1, -1)),
    hasId: template.includes('{id}'),
  }
}
