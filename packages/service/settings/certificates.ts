// A file of certificate authorities, as Node takes it from NODE_EXTRA_CA_CERTS. Node itself passes over a bad one, and
// every connection would fail later.
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'

const grammar = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g

/** The reason why a file holds no certificates, or `undefined` if it does. */
export function certificatesProblem(path: string): string | undefined {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    return `names a file that cannot be read (${(error as NodeJS.ErrnoException).code})`
  }
  const written = text.match(grammar)
  if (!written) return 'names a file without a certificate (PEM)'
  const bad = written.findIndex(one => !isCertificate(one))
  return bad === -1 ? undefined : `names a file whose certificate ${bad + 1} of ${written.length} cannot be read`
}

function isCertificate(pem: string) {
  try {
    return new X509Certificate(pem) !== undefined
  } catch {
    return false
  }
}
