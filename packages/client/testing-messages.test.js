import { errorCodes } from '../protocol/codes.js'
import { messageOf, messages } from './testing-messages.js'

test("the made-up gateway's messages are the gateway's", () => {
  expect(messages).toEqual(errorCodes)
  expect(messageOf('not_a_room')).toBe('not_a_room')
})
