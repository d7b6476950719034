import { findExtremes, findNewest, findWithin } from '../../src/measurements/store.ts';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { AlarmDecider, startAlarmTimer } from '../../src/alarms/decide.ts';
import { Actions } from '../../src/contract/actions.ts';
import type { AlarmSignal } from '../../src/contract/alarm.ts';
import type { SenseEvent } from '../../src/contract/event.ts';
import type { Driver, MessageQuotas } from '../../src/notifications/channels/channel.ts';
import type { EmailOptions } from '../../src/notifications/channels/email.ts';
import { startNotifications, type Notifications } from '../../src/notifications/notifications.ts';
import { NotificationSettings } from '../../src/notifications/settings.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import * as given from '../notifications/fixtures.ts';

export const minuteMs = 60_000;
const rules = { ringMaxAgeMs: 15 * minuteMs, reportedForMs: 60 * minuteMs };

type World = {
  nowTs: number;
  newestTs: number | null;
  quotas: MessageQuotas;
  drivers: { push: Driver; sms: Driver };
  email: EmailOptions | null;
  maxAttempts: number;
};

/** Alarms and the messages about them on a real database, with a clock that the test sets. */
export function useAlarms() {
  let database: TestDatabase;
  let outbox: Notifications | undefined;
  const drivers = () => ({
    push: given.scriptedDriver().driver,
    sms: given.scriptedDriver().driver,
  });
  const world: World = {
    nowTs: 0,
    newestTs: null,
    quotas: given.quotas,
    drivers: drivers(),
    email: null,
    maxAttempts: 1,
  };
  const closing: (() => Promise<unknown>)[] = [];
  beforeAll(async () => void (database = await testDatabase()));
  afterEach(async () => {
    await outbox?.close();
    outbox = undefined;
    for (const close of closing.splice(0).toReversed()) await close();
    await database.db.query('delete from account');
    await database.db.query('delete from message_count');
    Object.assign(world, { nowTs: 0, newestTs: null, quotas: given.quotas, drivers: drivers() });
    Object.assign(world, { email: null, maxAttempts: 1 });
  });
  afterAll(() => database.drop());

  async function start(): Promise<Notifications> {
    world.nowTs ||= Date.parse('2026-11-22T10:00:00Z');
    outbox = await startNotifications({
      db: database.db,
      connectionString: database.url,
      config: NotificationSettings.parse({ pollIntervalMs: 50, maxAttempts: world.maxAttempts }),
      quotasOf: () => world.quotas,
      isSmsForAll: false,
      contacts: { ...given.contacts, email: world.email },
      onAlarms: () => undefined,
      log: given.silent,
      clock: () => world.nowTs,
      drivers: world.drivers,
    });
    return outbox;
  }

  return {
    world,
    closing,
    start,
    db: () => database.db,
    url: () => database.url,
    /** Has alarms decide on these signals, and returns the events of firings as they are recorded. */
    async decide(notifications: Notifications, signals: AlarmSignal[]): Promise<SenseEvent[]> {
      const deps = {
        rules,
        notifying: notifications.rules,
        eventsLeft: () => 1_000,
        mayTellFirings: () => true,
        clock: () => world.nowTs,
      };
      await database.db.transaction((tx) => new AlarmDecider(deps).decide(tx, signals));
      return signals.flatMap((signal) => (signal.kind === 'fired' ? [signal.event] : []));
    },
    /** What the timer of a process does. */
    async runTimer(notifications: Notifications): Promise<void> {
      const findNewestTs = async (_: unknown, senses: { deviceId: number; sId: string }[]) =>
        new Map(
          world.newestTs === null
            ? []
            : senses.map(
                ({ deviceId, sId }) => [`${deviceId} ${sId}`, world.newestTs ?? 0] as const,
              ),
        );
      const deps = {
        db: database.db,
        rules,
        notifying: notifications.rules,
        findNewestTs,
        findNewest,
        findExtremes,
        findWithin,
        onChanged: () => undefined,
      };
      const errors: unknown[] = [];
      const timer = startAlarmTimer({
        ...deps,
        clock: () => world.nowTs,
        pollIntervalMs: 5,
        onError: (error) => void errors.push(error),
      });
      const countDue = async () => {
        const { rows } = await database.db.query<{ due: number }>(
          `select count(*)::int as due from alarm
            where closed_at is null
              and least(next_at, ends_at, expires_at) <= ms_to_timestamp($1)`,
          [world.nowTs],
        );
        return rows[0]?.due;
      };
      // A device whose message is being settled is left for the next poll.
      await expect.poll(countDue, { interval: 5 }).toBe(0);
      await timer.close();
      expect(errors).toEqual([]);
    },
    async addContact(
      { accountId }: given.Owner,
      kind: 'email' | 'webhook',
      address: string,
      { afterMs = 0, whenOver = false } = {},
    ): Promise<void> {
      await database.db.query(
        `insert into contact (account_id, kind, address, address_normal, place, confirmed_at,
                              after_ms, when_over)
         values ($1, $2, $3, $3, 0, now(), $4, $5)`,
        [accountId, kind, address, afterMs, whenOver],
      );
    },
    async findAlarm({ deviceId }: given.Owner) {
      const { rows } = await database.db.query<AlarmRow>(
        `select id, told, not_notified as "notNotified", next_at as "nextTs", failures, announcement,
                announced_at as "announcedTs", closed_by as "closedBy"
           from alarm where device_id = $1 order by id desc limit 1`,
        [deviceId],
      );
      if (!rows[0]) throw new Error('There is no alarm.');
      return rows[0];
    },
    async usedBy({ accountId }: given.Owner, kind: string): Promise<number> {
      const { rows } = await database.db.query<{ used: number }>(
        `select used from message_count where kind = $2 and account_id = $1 and key = ''`,
        [accountId, kind],
      );
      return rows[0]?.used ?? 0;
    },
  };
}

type AlarmRow = {
  id: number;
  told: string;
  notNotified: string | null;
  nextTs: number | null;
  failures: number;
  announcement: number;
  announcedTs: number | null;
  closedBy: string | null;
};

const of = { puId: 1, stId: 2, evId: 3 };
const place = { puId: 1, stId: 2 };

const identityOf = ({ accountId, deviceId, deviceUuid }: given.Owner) => ({
  accountId,
  deviceId,
  uuid: deviceUuid,
});

type FiredOptions = { actions?: object; isFresh?: boolean; evId?: number; name?: string };

/** A firing of the event "Too warm" by a value of this moment. */
export function firedOf(
  owner: given.Owner,
  ts: number,
  { actions = { cloud: { sendPush: true } }, isFresh = true, evId = 3, name }: FiredOptions = {},
): AlarmSignal {
  const engine = { pId: 'p', ...of, evId, ts };
  return {
    kind: 'fired',
    device: identityOf(owner),
    arrivedTs: ts,
    of: { ...of, evId },
    pId: 'p',
    event: { type: 'sense', ts, cause: { engine, senses: [{ sId: '0x1', val: 21.5, ts }] } },
    name: name ?? 'Too warm',
    stateName: '',
    purposeName: '',
    actions: Actions.parse(actions),
    tells: 'alarm',
    isFirst: true,
    began: { ts, arrivedTs: ts },
    isFresh,
    isGlobal: false,
    isRecorded: true,
    sIds: ['0x1'],
    conditions: [],
    from: place,
    movedTo: null,
  };
}

/** The value is back in range. */
export const endedOf = (owner: given.Owner, ts: number): AlarmSignal => ({
  kind: 'ended',
  device: identityOf(owner),
  arrivedTs: ts,
  of: [of],
  ts,
});
