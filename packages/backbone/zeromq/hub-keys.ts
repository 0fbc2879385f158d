// The CURVE keys of a hub as its service is set: fetchers and journals have the same settings and the same checks of them.
import { type Config, setting } from '@keycast/service'
import { isLoopback } from './backbone-zeromq.ts'
import { curveKeyProblems } from './curve.ts'

export const hubKeySettings = {
  backboneSecretKey: setting.secret({
    env: 'BACKBONE_SECRET_KEY',
    doc: 'CURVE secret key (Z85) of this node: encrypts the backbone. Goes with BACKBONE_CLIENT_KEYS.',
  }),
  backboneClientKeys: setting.secret({
    env: 'BACKBONE_CLIENT_KEYS',
    doc: 'CURVE public keys (Z85) of the gateways that are admitted, separated by spaces or commas.',
  }),
}

type HubKeys = Config<typeof hubKeySettings>

/**
 * Finds conflicts between keys that are well-formed as settings.
 *
 * @param config `host`: the address that gateways connect to
 * @param hostVariable the setting of `host`
 * @returns naming the settings, without the keys
 */
export function hubKeyProblems(
  { host, backboneSecretKey, backboneClientKeys }: HubKeys & { host: string },
  hostVariable: string,
): string[] {
  const problems = curveKeyProblems({
    BACKBONE_SECRET_KEY: backboneSecretKey === undefined ? [] : [backboneSecretKey],
    BACKBONE_CLIENT_KEYS: keysIn(backboneClientKeys),
  })
  if (problems.length === 0 && !backboneSecretKey && !isLoopback(host)) {
    problems.push(
      `${hostVariable}=${host} is no loopback address: beyond this host the backbone needs the BACKBONE_ keys`,
    )
  }
  return problems
}

/**
 * The keys of an encrypted backbone, or `undefined` for a plain one.
 *
 * @param config without problems
 */
export function hubCurveOf({
  backboneSecretKey: secretKey,
  backboneClientKeys,
}: HubKeys): { secretKey: string; clientKeys: string[] } | undefined {
  return secretKey === undefined ? undefined : { secretKey, clientKeys: keysIn(backboneClientKeys) }
}

const keysIn = (text: string | undefined) => (text ?? '').split(/[\s,]+/).filter(Boolean)
