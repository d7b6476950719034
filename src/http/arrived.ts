import type { IncomingMessage } from 'node:http';
import { DomainError } from '../errors.ts';

/**
 * Resolves once all of a body has come, and reads nothing of it: for one that a connection keeps unread. Throws
 * `invalid-input` where the client leaves before.
 */
export async function hasArrived(request: IncomingMessage): Promise<void> {
  if (request.complete) return;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onReadable = () => {
    if (request.complete) resolve();
  };
  const onClose = () => reject(new DomainError('invalid-input', 'The body broke off.'));
  request.on('readable', onReadable).once('close', onClose);
  if (request.destroyed) onClose();
  try {
    await promise;
  } finally {
    // Whoever reads it begins as if nobody had listened.
    request.off('readable', onReadable).off('close', onClose);
  }
}
