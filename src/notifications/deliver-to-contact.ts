import type { Sql } from '../db/sql.ts';
import { asDeliveryError, DeliveryError } from './drivers/driver.ts';
import type { EmailDriver } from './drivers/email.ts';
import type { HookDriver } from './drivers/signed-webhook.ts';
import { hookPayload } from './hook-payload.ts';
import type { NotificationLog } from './log.ts';
import { reasons, type Reason } from './reasons.ts';
import { settleDelivery, type ContactDelivery } from './dispatch-queries.ts';
import { wordsOf } from './words/words.ts';

/** What makes links for the mails to a contact, and the secrets of a webhook. */
export type ContactKeys = {
  confirmUrl: (contactUuid: string) => string;
  unsubscribeUrl: (contactUuid: string) => string;
  webhookSecrets: (contactUuid: string) => string[];
};

export type ContactDeliveryDeps = {
  db: Sql;
  /** Null: no SMTP server is configured. */
  email: EmailDriver | null;
  hooks: HookDriver;
  keys: ContactKeys;
  maxAttempts: number;
  log: NotificationLog;
  clock: () => number;
  onOutcome?:
    | ((outcome: { kind: 'email' | 'webhook'; state: 'sent' | 'failed' | 'retried' }) => void)
    | undefined;
};

const restAfter = 5;
const restMs = 900_000;

/**
 * Makes one attempt to deliver a message whose turn it is, and gives the turn back. What fails for now is
 * due again later each time.
 */
export async function deliverToContact(
  deps: ContactDeliveryDeps,
  turn: ContactDelivery,
): Promise<void> {
  const { db, maxAttempts, log, clock, onOutcome } = deps;
  const { kind } = turn;
  const via = kind === 'email' ? 'smtp' : 'webhook';
  const settled = { via, restAfter, restMs };
  const needless = reasonAgainst(turn);
  try {
    if (needless) throw new DeliveryError('never', needless, reasons[needless]);
    await send(deps, turn);
  } catch (error) {
    const failure = asDeliveryError(error);
    const { reason } = failure;
    const again = failure.verdict === 'again' && turn.attempts < maxAttempts;
    const nowMs = clock();
    log.warn(
      { event: 'notification.undelivered', err: failure, notificationId: turn.id, via, again },
      'A notification could not be delivered.',
    );
    await settleDelivery(db, turn, {
      ...settled,
      state: again ? 'queued' : 'failed',
      reason,
      error: reasons[reason],
      nowMs,
      dueMs: nowMs + backOffMs(turn.attempts),
      // What is the operator's server to mend says nothing of the recipient.
      hasFailed: needless || kind === 'email' ? null : true,
    });
    onOutcome?.({ kind, state: again ? 'retried' : 'failed' });
    return;
  }
  const nowMs = clock();
  const delivered = { state: 'sent', reason: null, error: null, hasFailed: false } as const;
  await settleDelivery(db, turn, { ...settled, ...delivered, nowMs, dueMs: nowMs });
  onOutcome?.({ kind, state: 'sent' });
}

/** As the jobs of push and SMS: about 3 s, 7 s, 20 s … six hours. */
function backOffMs(attempts: number): number {
  return Math.round(1_000 * Math.exp(Math.min(10, attempts)));
}

/** Why it need not be tried, judged when it is its turn. */
function reasonAgainst(turn: ContactDelivery): Reason | null {
  if (turn.isDisabled) return 'account-disabled';
  if (turn.kind === 'email' && turn.type !== 'confirm' && !turn.isConfirmed) return 'not-confirmed';
  if (turn.type === 'confirm' && turn.isUnsubscribed) return 'not-confirmed';
  return turn.isSuiting ? null : 'other-labels';
}

async function send(deps: ContactDeliveryDeps, turn: ContactDelivery): Promise<void> {
  const { keys, hooks, email } = deps;
  const { id, address, contactUuid } = turn;
  if (turn.kind === 'webhook') {
    const secrets = keys.webhookSecrets(contactUuid);
    await hooks.send({ id, url: address, secrets, payload: hookPayload(turn) });
    return;
  }
  if (!email) throw new DeliveryError('never', 'no-mail-server', 'SMTP_URL is not set.');
  const words = wordsOf(turn.language);
  const text =
    turn.type === 'confirm'
      ? { title: words.confirmTitle, body: words.confirmBody(keys.confirmUrl(contactUuid)) }
      : { title: turn.title, body: turn.body };
  const unsubscribeUrl = keys.unsubscribeUrl(contactUuid);
  const { unsubscribe } = words;
  await email.send({ id, recipient: address, ...text, unsubscribeUrl, unsubscribe });
}
