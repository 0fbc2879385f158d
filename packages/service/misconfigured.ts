/** Settings or keycast.yaml cannot be used. The message is for the operator and names everything that is wrong. */
export class Misconfigured extends Error {}
