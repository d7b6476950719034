import type { Logger } from '../log/logger.ts';

/** Where the outbox writes. */
export type NotificationLog = Pick<Logger, 'debug' | 'info' | 'warn'>;
