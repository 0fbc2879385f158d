/**
 * What the operator set cannot be used. Its message is for the operator and names every offender; to start the program again
 * changes nothing.
 */
export class Misconfigured extends Error {}
