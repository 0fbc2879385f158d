// Signs a call, so that the backend knows who made it, and when: a recorded call is worth nothing later.
import { createHmac } from 'node:crypto'

/** The backend takes a call that one of the secrets signed: one may be replaced by another without a call lost. */
export function signatureOf(body: string, secrets: string[], seconds: number): string {
  const signatures = secrets.map(
    secret => `v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`,
  )
  return [`t=${seconds}`, ...signatures].join(',')
}
