import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import type {
  ContactOptions,
  Driver,
  NotificationLog,
} from '../../src/notifications/channels/channel.ts';
import { startNotifications } from '../../src/notifications/notifications.ts';
import { NotificationSettings } from '../../src/notifications/settings.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { startHookReceiver, type HookReply, type Received } from '../support/hook-receiver.ts';
import * as given from './fixtures.ts';

type StartOptions = {
  contacts?: Partial<ContactOptions>;
  clock?: () => number;
  drivers?: { push: Driver; sms: Driver };
  log?: NotificationLog;
};

/** A database for the tests of a file. After each test it is emptied, and everything opened is closed. */
export function useContacts() {
  let database: TestDatabase;
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => void (database = await testDatabase()));
  afterEach(async () => {
    for (const close of closing.splice(0).toReversed()) await close();
    await database.db.query('delete from account');
  });
  afterAll(() => database.drop());
  return {
    db: (): Database => database.db,
    url: () => database.url,
    closing,
    /** Delivers until the test ends, like a process of the service. */
    async start({
      contacts,
      clock = Date.now,
      drivers = { push: given.scriptedDriver().driver, sms: given.scriptedDriver().driver },
      log = given.silent,
    }: StartOptions = {}) {
      const outbox = await startNotifications({
        onAlarms: () => undefined,
        drivers,
        contacts: { ...given.contacts, ...contacts },
        db: database.db,
        connectionString: database.url,
        config: NotificationSettings.parse({ pollIntervalMs: 100, maxAttempts: 20 }),
        quotasOf: () => given.quotas,
        isSmsForAll: false,
        log,
        clock,
      });
      let ended: Promise<void> | undefined;
      const close = () => (ended ??= outbox.close());
      closing.push(close);
      return { ...given.withEnqueue(outbox, clock), close };
    },
    async givenReceiver(reply?: (request: Received) => HookReply | Promise<HookReply>) {
      const receiver = await startHookReceiver(reply);
      closing.push(receiver.close);
      return receiver;
    },
    async addContact(
      { accountId }: given.Owner,
      kind: 'email' | 'webhook',
      address: string,
    ): Promise<void> {
      await database.db.query(
        `insert into contact (account_id, kind, address, address_normal, place, confirmed_at)
         values ($1, $2, $3, $3, 0, now())`,
        [accountId, kind, address],
      );
    },
    async statesOf(owner: given.Owner) {
      const outcomes = await given.outcomesOf(database.db, owner);
      return outcomes.map(({ state, reason }) => [state, reason]);
    },
  };
}

export const pushes = (owner: given.Owner, count: number) =>
  Array.from({ length: count }, (_, n) => given.pushOf(owner, `number ${n}`));
