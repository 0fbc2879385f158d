import { failureOfStatus } from './response.ts'

test.each([200, 203])('%i brings the value', status => {
  expect(failureOfStatus(status)).toBeUndefined()
})

test.each([
  [204, 'not_found'],
  [205, 'not_found'],
  [404, 'not_found'],
  [410, 'not_found'],
  [429, 'backend_throttled'],
  [300, 'backend_redirect'],
  [301, 'backend_redirect'],
  [308, 'backend_redirect'],
  [400, 'backend_refused'],
  [401, 'backend_refused'],
  [451, 'backend_refused'],
  [500, 'backend_error'],
  [503, 'backend_error'],
  [599, 'backend_error'],
  [201, 'backend_error'],
  [202, 'backend_error'],
  [206, 'backend_error'],
  [304, 'backend_error'],
  [600, 'backend_error'],
  [999, 'backend_error'],
])('%i is %s, and the message names the status', (status, code) => {
  expect(failureOfStatus(status)).toEqual({ code, message: expect.stringContaining(String(status)) })
})
