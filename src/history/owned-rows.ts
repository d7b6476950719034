import type { Sql } from '../db/sql.ts';
import { deletePieceOf, pieceRows, type OwnedRows } from './pieces.ts';

const ofDevice = (table: string): OwnedRows => ({ table, owner: 'device_id' });
const ofAccount = (table: string): OwnedRows => ({ table, owner: 'account_id' });

/**
 * What of a device can be many, in the order in which it goes: first what names people (telephone numbers, push
 * tokens) or waits to be told to them. The history follows (`purgeDevices`), and then the device's row, which takes
 * along what is one a device, or a few: `test/history/cascades.test.ts` has all tables with the reason.
 */
export const deviceRows: readonly OwnedRows[] = [
  ofDevice('notification'),
  ofDevice('alarm'),
  ofDevice('alarm_snooze'),
  ofDevice('rejection'),
  ofDevice('device_profile'),
  ofDevice('refused_login'),
];

const kindsOfAccount = `kind in ('account', 'recipient', 'confirmations', 'webhook', 'sms')`;

/** What of an account names people. It goes with the mark as far as one transaction may (`forgetPersons`), else first. */
export const personalRows: readonly OwnedRows[] = [
  ofAccount('contact'),
  ofAccount('push_token'),
  ofAccount('email_change'),
  ofAccount('account_mail'),
  ofAccount('recipient_turn'),
  ofAccount('notification'),
  ofAccount('alarm'),
  ofAccount('purpose'),
  ofAccount('session'),
  ofAccount('api_key'),
  ofAccount('stream_ticket'),
  ofAccount('idempotency_key'),
  ofAccount('account_audit'),
  ofAccount('refused_login'),
  ofAccount('removed_uuid'),
  ofAccount('job'),
  { ...ofAccount('message_count'), before: kindsOfAccount },
];

/** What else of an account can be many. It goes when none of its devices is left. */
export const accountRows: readonly OwnedRows[] = [
  ofAccount('profile'),
  ofAccount('profile_content'),
  ofAccount('account_event'),
  ofAccount('account_activity'),
  ofAccount('event_feed'),
  ofAccount('alarm_change'),
];

/**
 * Deletes what of an account names people, in the transaction that marks it as removed: `pieceRows` of each table at
 * most, the rest goes first of the pieces.
 */
export async function forgetPersons(tx: Sql, accountId: number): Promise<void> {
  for (const rows of personalRows) await tx.query(deletePieceOf(rows), [[accountId], pieceRows]);
  // Telephone numbers in actions. The rows stay: roll-outs name them, and can be many.
  await tx.query(
    `update profile_content set purposes = '[]'
      where id = any(array(select id from profile_content where account_id = $1 limit $2))`,
    [accountId, pieceRows],
  );
}
