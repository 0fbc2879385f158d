import { createHash } from 'node:crypto'
import { keyProblem } from '@keycast/protocol'
import { ANONYMOUS_VIEWER, readViewerKey, viewerKey } from './viewer-key.ts'

const ann = createHash('sha256').update('ann').digest('base64url')

test('the pair of a key and a viewer is read back', () => {
  for (const viewer of [ann, ANONYMOUS_VIEWER]) {
    expect(readViewerKey(viewerKey('doc:a/b', viewer))).toEqual({ key: 'doc:a/b', viewer })
  }
})

test('no client can name it', () => {
  expect(keyProblem(viewerKey('doc:1', ann))).toBeDefined()
})

test.each(['doc:1', 'doc:1|', 'doc:1|ann', `doc:1 ${ann}`, `doc:1||${ann}`, `doc:1|${ann}|${ann}`, `doc:1|${ann}x`])(
  '%j names no viewer',
  text => {
    expect(readViewerKey(text)).toBeUndefined()
  },
)
