import type { Database } from '../db/database.ts';
import type { AlarmPort } from './alarm-port.ts';
import { asDeliveryError, DeliveryError, type DriverVerdict } from './channels/channel.ts';
import { endAnnouncement } from './end-announcement.ts';
import { gather } from './gather.ts';
import type { UndeliveredLog } from './log.ts';
import type { NumberRule } from './phone-number.ts';
import { hasPushToken, removePushToken } from './queries.ts';
import { reasonAgainst } from './reason-against.ts';
import { reasons, type Reason } from './reasons.ts';
import { send, type SendDeps } from './send.ts';
import { listAlarmIds, settleTurn, type TurnOutcome } from './settle-turn.ts';
import type { MessageChannel } from './sort-out.ts';
import type { Turn } from './turn.ts';

export type AttemptState = 'sent' | 'logged' | 'failed' | 'retried';

export type DeliveryDeps = SendDeps & {
  db: Database;
  alarms: AlarmPort;
  isAllowedNumber: NumberRule;
  maxAttempts: number;
  undelivered: UndeliveredLog;
  clock: () => number;
  /** Told how each attempt ended, for whoever counts. */
  onOutcome?: ((outcome: { kind: MessageChannel; state: AttemptState }) => void) | undefined;
};

/**
 * Makes one attempt to deliver a message whose turn it is, and gives the turn back. What fails for now is
 * due again later each time. A process that ends in between repeats the attempt, so a message is sent at
 * least once.
 */
export async function deliver(deps: DeliveryDeps, turn: Turn): Promise<void> {
  const { db, alarms, maxAttempts, undelivered, clock, onOutcome } = deps;
  const { kind } = turn;
  const settle = async (outcome: Omit<TurnOutcome, 'nowMs' | 'via'>, via: string) => {
    await db.transaction(async (tx) => {
      const alarmIds = await listAlarmIds(tx, turn);
      if (alarmIds.length > 0) await alarms.lockAlarms(tx, alarmIds);
      const nowMs = clock();
      const settled = await settleTurn(tx, turn, { ...outcome, via, nowMs });
      if (outcome.state !== 'queued')
        for (const one of settled) await endAnnouncement(tx, one, { alarms, nowTs: nowMs });
    });
    if (outcome.state !== 'queued' && turn.alarmId !== null) alarms.onChanged(turn.accountId);
    onOutcome?.({ kind, state: outcome.state === 'queued' ? 'retried' : outcome.state });
  };
  const via = viaOf(deps, kind);
  // A telephone whose session has ended, or whose token has left `apn`, gets nothing that still waited for it.
  const isGone = kind === 'push' && !(await hasPushToken(db, turn.accountId, turn.recipient));
  const needless = isGone ? 'contact-gone' : reasonAgainst(turn, deps.isAllowedNumber);
  try {
    if (needless) throw new DeliveryError('never', needless, reasons[needless]);
    await send(deps, await gather(deps, turn));
  } catch (error) {
    const failure = asDeliveryError(error);
    const { verdict, reason } = failure;
    if (verdict === 'gone' && kind === 'push')
      await removePushToken(db, turn.accountId, turn.recipient);
    const again = verdict === 'again' && turn.attempts < maxAttempts;
    const restMs = Math.min(failure.retryAfterMs ?? 0, longestRestMs);
    // What a provider says is for the operator: an account is told a reason of ours.
    undelivered.note({ about: { notificationId: turn.id }, host: turn.host, via, failure, again });
    await settle(
      {
        state: again ? 'queued' : 'failed',
        reason,
        error: reasons[reason],
        dueMs: clock() + Math.max(restMs, backOffMs(turn.attempts)),
        restMs,
        hasFailed: needless ? null : isOfRecipient(kind, verdict, reason),
      },
      via,
    );
    return;
  }
  // What a log took reached nobody.
  const state = isLog(deps, kind) ? 'logged' : 'sent';
  const over = { reason: null, error: null, dueMs: clock(), restMs: 0, hasFailed: false };
  await settle({ state, ...over }, via);
}

/** So long at most nothing is sent to who asks for a rest (`Retry-After`): a message waits for a day. */
const longestRestMs = 3_600_000;

/** About 3 s, 7 s, 20 s … six hours. */
function backOffMs(attempts: number): number {
  return Math.round(1_000 * Math.exp(Math.min(10, attempts)));
}

function viaOf({ drivers }: SendDeps, kind: MessageChannel): string {
  if (kind === 'email') return 'smtp';
  return kind === 'webhook' ? 'webhook' : drivers[kind].name;
}

const isLog = ({ drivers }: SendDeps, kind: MessageChannel): boolean =>
  kind === 'sms' && drivers.sms.isLog === true;

/** What is the operator's provider to mend says nothing of the recipient: null. */
function isOfRecipient(kind: MessageChannel, verdict: DriverVerdict, reason: Reason): true | null {
  if (kind === 'webhook') return true;
  return verdict !== 'again' && reason !== 'no-provider' && reason !== 'no-mail-server'
    ? true
    : null;
}
