// What other workspaces use of the backbone.
export { FetcherUnavailable } from './backbone.js'
export { fnv1a } from './fnv1a.js'
export { readNodes } from './gateway/nodes.js'
export { createZeromqBackbone, createZeromqHub, isLoopback } from './zeromq/backbone-zeromq.js'
export { createCurveKeyPair, curveKeyProblems, curvePairOf } from './zeromq/curve.js'
export { receive } from './zeromq/receive.js'
export { createWriter } from './zeromq/writer.js'

/**
 * @typedef {import('./backbone.js').Answer} Answer
 * @typedef {import('./backbone.js').Backbone} Backbone
 * @typedef {import('./backbone.js').BackboneEvents} BackboneEvents
 * @typedef {import('./backbone.js').Delta} Delta
 * @typedef {import('./backbone.js').FailedAnswer} FailedAnswer
 * @typedef {import('./backbone.js').Format} Format
 * @typedef {import('./backbone.js').Held} Held
 * @typedef {import('./backbone.js').Hub} Hub
 * @typedef {import('./backbone.js').HubEvents} HubEvents
 */
