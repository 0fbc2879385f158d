// The messages of the simulated conversations: each a pure function of its number and time, all of one length, so that
// a window sliding over them changes at its ends only and never in length.

/** Length of every message in both forms, its separator included. */
export const MESSAGE_BYTES = 160

/** Not all of them ASCII, so that tests notice broken UTF-8. */
export const authors = ['Ada', 'Zoë', 'Jürgen', 'Mei', 'Óscar']

/** ASCII without quotes and backslashes, so that a character is a byte and needs no escape in JSON. */
const prose =
  'The parcel left the depot this morning and should be with you by Thursday; if nobody is at home, the driver leaves ' +
  'it with a neighbour and puts a card through the door. I looked at the second invoice again: the amount is right, ' +
  'but it was booked twice, so one of the two goes back to you within the week. Could you send a photograph of the ' +
  'label on the back? It says which revision of the board is inside, and the spare part differs between them. ' +
  'We moved the call to ten, the room stays the same, and the notes of the last one are in the shared folder. '

const sentenceStarts = [0, ...[...prose.matchAll(/[.:;?] (?=\S)/g)].map(({ index }) => index + 2)]

/**
 * So many characters of prose, from the start of a sentence.
 *
 * @param sentence any whole number; the same one always gives the same
 */
export function proseOf(sentence: number, length: number) {
  const start = sentenceStarts[sentence % sentenceStarts.length]
  const text = prose.repeat(Math.ceil((start + length) / prose.length)).slice(start, start + length)
  return text.length > 3 ? `${text.slice(0, -3)}...` : text
}

/**
 * One message as JSON with a comma before it.
 *
 * @param at ISO 8601
 */
export function jsonMessage(number: number, at: string) {
  const head = `,{"id":${number},"author":"${authorOf(number)}","time":"${at}","text":"`
  return `${head}${textOf(number, head, 2)}"}`
}

/**
 * One message as a line of text.
 *
 * @param at ISO 8601
 */
export function textMessage(number: number, at: string) {
  const head = `${at} ${authorOf(number)}: `
  return `${head}${textOf(number, head, 1)}\n`
}

function authorOf(number: number) {
  return authors[number % authors.length]
}

/** Text that fills a message up to its length. */
function textOf(number: number, head: string, tailBytes: number) {
  return proseOf(number, MESSAGE_BYTES - Buffer.byteLength(head) - tailBytes)
}
