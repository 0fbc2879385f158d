import { readFileSync } from 'node:fs'
import { closeCodes, errorCodes } from './codes.js'

const page = readFileSync(new URL('../../docs/protocol.md', import.meta.url), 'utf8')

/** The rows of the table under a heading, as lists of cells. */
function tableUnder(heading: string) {
  const section = page.split(`## ${heading}\n`)[1].split('\n## ')[0]
  const rows = section.split('\n').filter(line => line.startsWith('| '))
  return rows.slice(1).map(row => row.slice(2, -2).split(' | '))
}

test('docs/protocol.md and the code have the same error codes, with the same advice', () => {
  const documented = Object.fromEntries(tableUnder('Error codes').map(([code, doc]) => [code.replaceAll('`', ''), doc]))
  expect(documented).toEqual(errorCodes)
})

test('docs/protocol.md and the code have the same close codes', () => {
  const documented = tableUnder('Close codes').map(([code, doc, reconnect]) => ({
    code: Number(code),
    reconnect: reconnect === 'yes',
    doc,
  }))
  expect(documented).toEqual(Object.values(closeCodes))
})
