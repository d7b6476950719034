import { randomUUID } from 'node:crypto';
import type { Sql } from '../db/sql.ts';
import { deliverToContact } from './deliver-to-contact.ts';
import type { ContactDeliveryDeps, ContactKeys } from './deliver-to-contact.ts';
import type { EmailDriver } from './drivers/email.ts';
import { emailDriver } from './drivers/email.ts';
import type { Reach } from './drivers/post-publicly.ts';
import { hookDriver } from './drivers/signed-webhook.ts';
import { startListening } from './listen.ts';
import type { NotificationLog } from './log.ts';
import { forgetProcess, tellChannels } from './process-queries.ts';
import { dueChannel, giveUpOld } from './dispatch-queries.ts';
import { startContactDispatcher } from './contact-dispatcher.ts';

/** How contacts are reached: e-mail and webhooks of accounts. */
export type ContactOptions = {
  keys: ContactKeys;
  /** Null: no mail is sent. */
  email: { smtpUrl: string; from: string; timeoutMs: number } | null;
  isPrivateAllowed: boolean;
  /** Stands in for the system's own. */
  lookupAll?: Reach['lookupAll'];
};

export type ContactSideDeps = {
  db: Sql;
  connectionString: string;
  maxAttempts: number;
  pollIntervalMs: number;
  log: NotificationLog;
  clock: () => number;
  onOutcome?: ContactDeliveryDeps['onOutcome'];
  /** The channels of this process beside those of contacts. */
  channels: string[];
};

export type ContactSide = {
  /** What is due now and then. */
  tend: () => Promise<void>;
  close: () => Promise<void>;
};

const hookTimeoutMs = 5_000;
// Longer than any delivery takes.
const leaseMs = 60_000;
const giveUpAfterMs = 86_400_000;

/** Starts delivering to contacts in this process, and says which channels it has. */
export async function startContactSide(
  { keys, email: mail, isPrivateAllowed, lookupAll }: ContactOptions,
  deps: ContactSideDeps,
): Promise<ContactSide> {
  const { db, connectionString, maxAttempts, pollIntervalMs, log, clock, onOutcome } = deps;
  const email: EmailDriver | null = mail && emailDriver(mail);
  const reach: Reach = {
    isPrivateAllowed,
    timeoutMs: hookTimeoutMs,
    ...(lookupAll ? { lookupAll } : {}),
  };
  const hooks = hookDriver(reach, clock);
  const delivery = { db, email, hooks, keys, maxAttempts, log, clock, onOutcome };
  const onError = (err: unknown) =>
    log.warn(
      { event: 'notifications.contacts-failed', err },
      'What is due for contacts could not be read or written; it is tried again.',
    );
  const process = randomUUID();
  const channels = [...deps.channels, ...(email ? ['email'] : []), 'webhook'];
  const tell = () => tellChannels(db, process, { channels, nowMs: clock() });
  await tell();
  const turns = startContactDispatcher({
    db,
    clock,
    deliver: (turn) => deliverToContact(delivery, turn),
    pollIntervalMs,
    leaseMs,
    onError,
  });
  const listening = startListening({
    connectionString,
    channel: dueChannel,
    onNotified: turns.look,
    onError,
  });
  return {
    async tend() {
      await tell();
      await giveUpOld(db, clock() - giveUpAfterMs, clock());
    },
    async close() {
      await listening.close();
      await turns.close();
      email?.close();
      await forgetProcess(db, process).catch(onError);
    },
  };
}
