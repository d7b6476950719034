import type { Sql } from '../db/sql.ts';
import type { NotificationLog } from './log.ts';
import { asDeliveryError, DeliveryError } from './drivers/driver.ts';
import type { OutgoingMessage } from './drivers/driver.ts';
import type { Drivers } from './drivers/open.ts';
import { normalizePhoneNumber } from '../contract/phone-number.ts';
import type { NumberRule } from './phone-number.ts';
import { claimNotification, removePushToken, settleNotification } from './queries.ts';
import type { DueNotification } from './queries.ts';
import type { Reason } from './reasons.ts';

export type AttemptState = 'sent' | 'logged' | 'failed' | 'retried';

export type DeliveryDeps = {
  db: Sql;
  drivers: Drivers;
  isAllowedNumber: NumberRule;
  maxAttempts: number;
  log: NotificationLog;
  clock: () => number;
  /** Told how each attempt ended, for whoever counts. */
  onOutcome?: (outcome: { kind: 'push' | 'sms'; state: AttemptState }) => void;
};

/**
 * Makes one attempt and writes down how it ended. Throws where another attempt is due: its job then
 * comes back, later each time. A process that ends in between repeats the attempt, so a message is
 * sent at least once.
 */
export async function deliver(
  { db, drivers, isAllowedNumber, maxAttempts, log, clock, onOutcome }: DeliveryDeps,
  notificationId: number,
): Promise<void> {
  const due = await claimNotification(db, notificationId);
  if (!due) return;
  const { kind } = due;
  const driver = drivers[kind];
  const settle = (state: 'queued' | 'sent' | 'logged' | 'failed', reason: Reason | null) =>
    settleNotification(db, due.id, { state, reason, via: driver.name, nowMs: clock() });
  try {
    if (due.isDisabled)
      throw new DeliveryError('never', 'account-disabled', 'Not sent: the account is disabled.');
    if (kind === 'sms') checkNumber(due.recipient, isAllowedNumber);
    await driver.send(messageOf(due));
  } catch (error) {
    const failure = asDeliveryError(error);
    if (failure.verdict === 'gone') await removePushToken(db, due.accountId, due.recipient);
    const again = failure.verdict === 'again' && due.attempts < maxAttempts;
    // What a provider says is for the operator: an account is told a reason of ours.
    const fields = { err: failure, notificationId: due.id, via: driver.name, again };
    log.warn(
      { event: 'notification.undelivered', ...fields },
      'A notification could not be delivered.',
    );
    await settle(again ? 'queued' : 'failed', failure.reason);
    onOutcome?.({ kind, state: again ? 'retried' : 'failed' });
    if (again) throw failure;
    return;
  }
  // What a log took reached nobody.
  const state = driver.isLog ? 'logged' : 'sent';
  await settle(state, null);
  onOutcome?.({ kind, state });
}

/** What waited while the configuration changed, or came before there were rules. */
function checkNumber(recipient: string, isAllowedNumber: NumberRule): void {
  const number = normalizePhoneNumber(recipient);
  if (number === null) throw new DeliveryError('never', 'number-form', 'Not sent: no number.');
  if (!isAllowedNumber(number))
    throw new DeliveryError('never', 'number-refused', 'Not sent: outside of allowedPrefixes.');
}

function messageOf({ id, recipient, title, body, ...due }: DueNotification): OutgoingMessage {
  return { id, recipient, title, body, data: { deviceAuthUuid: due.deviceUuid, ...due.engine } };
}
