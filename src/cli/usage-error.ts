/** A command cannot be run with these arguments; the message says what to write, a line for each that is wrong. */
export class UsageError extends Error {}
