// Where the messageIds of the last minutes are: from a part of an id's hash to the id's number. 8 to 16 bytes each, outside
// the heap: at 20,000 publishes a second there are six million of them.

/** Entries of a table that is not the only one; half of them are used at most. A table is forgotten as a whole. */
const ENTRIES_MAX = 2 ** 21
const ENTRIES_MIN = 2 ** 10

/**
 * `prints`: parts of hashes, in open addressing. `offsets`: of each, the number from `base` on; 0 where there is none.
 */
interface Table {
  base: number
  last: number
  count: number
  prints: Uint32Array
  offsets: Uint32Array
}

export function createIdIndex() {
  /** Oldest first. */
  const tables: Table[] = []

  const newTable = (base: number, entries: number): Table => ({
    base,
    last: base,
    count: 0,
    prints: new Uint32Array(entries),
    offsets: new Uint32Array(entries),
  })

  function put(table: Table, print: number, number: number) {
    const mask = table.offsets.length - 1
    let place = print & mask
    while (table.offsets[place] !== 0) place = (place + 1) & mask
    table.prints[place] = print
    table.offsets[place] = number - table.base + 1
    table.last = number
    table.count++
  }

  /** The table for the next id. */
  function tableFor(number: number) {
    const last = tables.at(-1)
    if (last && last.count * 2 < last.offsets.length) return last
    if (!last || last.offsets.length >= ENTRIES_MAX) {
      tables.push(newTable(number, last ? ENTRIES_MAX : ENTRIES_MIN))
    } else {
      const larger = newTable(last.base, last.offsets.length * 2)
      for (let place = 0; place < last.offsets.length; place++) {
        if (last.offsets[place] !== 0) put(larger, last.prints[place], last.base + last.offsets[place] - 1)
      }
      larger.last = last.last
      tables[tables.length - 1] = larger
    }
    return tables[tables.length - 1]
  }

  return {
    /** @param print 32 bits of its hash @param number above all before */
    add: (print: number, number: number) => put(tableFor(number), print, number),

    /** @param look whether the id of that number is the one: another may have the same part of its hash */
    find<T>(print: number, look: (number: number) => T | undefined): T | undefined {
      for (let index = tables.length - 1; index >= 0; index--) {
        const { base, prints, offsets } = tables[index]
        const mask = offsets.length - 1
        for (let place = print & mask; offsets[place] !== 0; place = (place + 1) & mask) {
          const found = prints[place] === print ? look(base + offsets[place] - 1) : undefined
          if (found !== undefined) return found
        }
      }
      return undefined
    },

    /** Frees what it can of the ids below a number. */
    forgetBefore(number: number) {
      while (tables.length > 0 && tables[0].last < number) tables.shift()
    },

    clear: () => void tables.splice(0),

    stats: () => ({
      bytes: tables.reduce((sum, { prints, offsets }) => sum + prints.byteLength + offsets.byteLength, 0),
    }),
  }
}
