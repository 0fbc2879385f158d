/** One line of a scrape. Formatting `sharedLabels` costs once for all lines that have them. */
export interface Sample {
  value: number
  labels?: Record<string, string | number>
  sharedLabels?: Record<string, string>
  /** Where it is not the metric's own. */
  metricName?: string
}

/** A line for each count of `counts`, whose names are values of `label`. */
export const by = (label: string, counts: Readonly<Record<string, number>>): Sample[] =>
  Object.entries(counts).map(([name, value]) => ({ labels: { [label]: name }, value }))
