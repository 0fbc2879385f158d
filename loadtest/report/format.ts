// Numbers and text in the form that people read.

/** As many digits as a measurement is worth: three, and all before the point. */
export function formatNumber(value: number | null | undefined) {
  if (value === undefined || value === null || !Number.isFinite(value)) return '—'
  const magnitude = Math.abs(value)
  const digits = Number.isInteger(value) || magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeHtml = (text: string) =>
  text.replace(/[&<>"']/g, character => entities[character as keyof typeof entities])
