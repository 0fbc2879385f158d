/** A key as it stands in the path of a URL: its `?` would begin a query of the URL, and the rest be another key. */
export const keyPath = (key: string) => encodeURI(key).replaceAll('?', '%3F')
