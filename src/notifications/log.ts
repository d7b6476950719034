import type { Logger } from '../log/logger.ts';

/** Where the outbox writes. */
export type OutboxLog = Pick<Logger, 'debug' | 'info' | 'warn'>;
