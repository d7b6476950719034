/** Where the outbox writes; a pino logger is one. */
export type OutboxLog = {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
};
