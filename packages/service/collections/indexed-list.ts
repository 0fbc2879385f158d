// Plain arrays whose items know their place, so that taking one out costs the same however many there are. The order is
// not kept: the last item takes the place of the one that goes.

interface Indexed {
  index: number
}

/** @param item is in no list */
export function addIndexed<T extends Indexed>(list: T[], item: T) {
  item.index = list.length
  list.push(item)
}

/** @param item is in the list */
export function removeIndexed<T extends Indexed>(list: T[], item: T) {
  const last = list.pop() as T
  if (last === item) return
  list[item.index] = last
  last.index = item.index
}
