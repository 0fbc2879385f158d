// Names a token without giving it away, so that a node can say which of a user's tokens the backend refused.
import { createHash } from 'node:crypto'

/** @param authorization the `Authorization` that the token makes */
export const tokenDigest = (authorization: string) => createHash('sha256').update(authorization).digest('base64url')
