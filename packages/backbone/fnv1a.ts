/**
 * FNV-1a over UTF-16 code units, 32 bits: keys are ASCII. Its low bits hardly differ between keys that differ in one
 * digit.
 *
 * @returns a signed integer
 */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash
}
