/** npm start cannot go on, for a reason that the person at the terminal can mend: shown without a stack. */
export class StartError extends Error {}
