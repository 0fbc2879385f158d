// Finds who is to lose some of a thing that is short: of all networks the one that holds most, of its addresses the one
// that holds most, and so on down to a single item. So a thousand who hold a little each do not cost another their own. No
// walk over all of them is needed: strangers choose how often somebody is looked for.
import { accountsOf, type Payer } from './payer.ts'

/** An account, or an item. `index`: its place in the heap around it. */
interface Load {
  readonly around: Load | undefined
  readonly name: unknown
  amount: number
  index: number
  /** Of those within it: a binary heap, the largest first. */
  heap: Load[]
  byName: Map<unknown, Load> | undefined
}

const NONE: Load[] = []

export function createLoads<T>() {
  const all = newLoad(undefined, undefined)
  const loads = new Map<T, Load>()

  /** @param payer who counts for it as long as it is here */
  function set(item: T, payer: Payer | undefined, amount: number) {
    const load = loads.get(item) ?? open(item, payer)
    const more = amount - load.amount
    for (let each: Load | undefined = load; each; each = each.around) {
      each.amount += more
      if (each.around) sift(each.around.heap, each)
    }
  }

  function open(item: T, payer: Payer | undefined) {
    let load = all
    for (const name of payer === undefined ? [undefined] : accountsOf(payer)) load = within(load, name)
    load = within(load, item)
    loads.set(item, load)
    return load
  }

  function remove(item: T) {
    const load = loads.get(item)
    if (!load) return
    set(item, undefined, 0)
    loads.delete(item)
    for (let each = load; each.around && each.heap.length === 0; each = each.around) leave(each.around, each)
  }

  return {
    set,
    delete: remove,

    /** @returns the item to be lost; `undefined` where there is none */
    largest(): T | undefined {
      let load = all
      while (load.heap.length > 0) load = load.heap[0]
      return load === all ? undefined : (load.name as T)
    },

    total: () => all.amount,
  }
}

const newLoad = (around: Load | undefined, name: unknown): Load => ({
  around,
  name,
  amount: 0,
  index: 0,
  heap: NONE,
  byName: undefined,
})

function within(around: Load, name: unknown): Load {
  around.byName ??= new Map()
  const known = around.byName.get(name)
  if (known) return known
  const load = newLoad(around, name)
  around.byName.set(name, load)
  if (around.heap === NONE) around.heap = []
  load.index = around.heap.push(load) - 1
  return load
}

function leave({ heap, byName }: Load, load: Load) {
  byName?.delete(load.name)
  const last = heap.pop() as Load
  if (last === load) return
  put(heap, last, load.index)
  sift(heap, last)
}

/** Moves a load to the place of its amount. */
function sift(heap: Load[], load: Load) {
  let { index } = load
  for (let above = (index - 1) >> 1; index > 0 && heap[above].amount < load.amount; above = (index - 1) >> 1) {
    put(heap, heap[above], index)
    index = above
  }
  for (;;) {
    let below = 2 * index + 1
    if (below + 1 < heap.length && heap[below + 1].amount > heap[below].amount) below++
    if (below >= heap.length || heap[below].amount <= load.amount) break
    put(heap, heap[below], index)
    index = below
  }
  put(heap, load, index)
}

function put(heap: Load[], load: Load, index: number) {
  heap[index] = load
  load.index = index
}
