import type { Write } from '../log/logger.ts';

const nothing: Write = () => {};

/** What the parts of the service would log, for a command: warnings as lines for whoever runs it. */
export const consoleLog = {
  debug: nothing,
  info: nothing,
  warn: ((_context, message) => console.error(message)) satisfies Write,
};
