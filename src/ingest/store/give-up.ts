import { DomainError } from '../../errors.ts';
import type { Work } from '../queue/device-queue.ts';
import { forgetContexts } from './blame.ts';
import type { Storing } from './storing.ts';

/** The bounds are reached, or the service stops: nothing is acknowledged, and devices send it again. */
export function giveUp(works: Work[], cause: unknown, { givenUp, deps }: Storing): void {
  const { log, stopping, queues } = deps;
  forgetContexts(works);
  const message = stopping.aborted
    ? 'The service stops before this could be stored.'
    : 'This could not be stored for too long.';
  if (!stopping.aborted) {
    log.error(
      { event: 'batch.given-up', err: cause, devices: works.length },
      'A batch was tried too often; nothing of it is acknowledged, and its senders send it again.',
    );
  }
  const error = new DomainError('unavailable', message, { cause });
  for (const { queue } of works) givenUp.add(queue);
  failAll(works, error);
  queues.failBehind(works, error);
}

/** None of these messages is acknowledged. */
export function failAll(works: Work[], error: unknown): void {
  for (const { units } of works) for (const { message } of units) message.fail(error);
}
