// How numbers stand at the axes of a chart.

export const ink = '#475569'

/** @param {number} value */
export const short = value => {
  const magnitude = Math.abs(value)
  if (magnitude >= 1e6) return `${trim(value / 1e6)} M`
  if (magnitude >= 10_000) return `${trim(value / 1e3)} k`
  return magnitude >= 100 ? Math.round(value).toLocaleString('en') : trim(value)
}

/** @param {number} value */
export const trim = value => String(Number(value.toPrecision(3)))

/** @param {any} [more] */
export const valueAxis = more => ({
  type: 'value',
  axisLabel: { formatter: short, color: ink },
  splitLine: { lineStyle: { color: '#e2e8f0' } },
  nameTextStyle: { color: ink },
  ...more,
})

/**
 * The axis of percentiles, each halving of the rest above at the same distance: a value is one over the rest.
 *
 * @param {number} max
 */
export const percentileAxis = max => ({
  type: 'log',
  min: 1,
  max,
  axisLabel: {
    color: ink,
    showMaxLabel: false,
    hideOverlap: true,
    formatter: (/** @type {number} */ value) => (value === 1 ? '0 %' : `${Number((100 - 100 / value).toFixed(4))} %`),
  },
  splitLine: { lineStyle: { color: '#e2e8f0' } },
  axisLine: { lineStyle: { color: '#cbd5e1' } },
})
