// The CURVE keys of a hub as its service is set: fetchers and journals have the same settings and the same checks of them.
import { setting } from '@keycast/service'
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

/** @typedef {import('@keycast/service').Config<typeof hubKeySettings>} HubKeys */

/**
 * Finds conflicts between keys that are well-formed as settings.
 *
 * @param {HubKeys & { host: string }} config `host`: the address that gateways connect to
 * @param {string} hostVariable the setting of `host`
 * @returns {string[]} naming the settings, without the keys
 */
export function hubKeyProblems({ host, backboneSecretKey, backboneClientKeys }, hostVariable) {
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
 * @param {HubKeys} config without problems
 * @returns {{ secretKey: string, clientKeys: string[] } | undefined}
 */
export function hubCurveOf({ backboneSecretKey: secretKey, backboneClientKeys }) {
  return secretKey === undefined ? undefined : { secretKey, clientKeys: keysIn(backboneClientKeys) }
}

/** @param {string | undefined} text */
const keysIn = text => (text ?? '').split(/[\s,]+/).filter(Boolean)
