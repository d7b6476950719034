import type { AccountThrottle } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import type { ListeningWatch } from '../listening/listening.ts';
import { startHeartbeat } from '../notifications/heartbeat.ts';
import type { Notifications } from '../notifications/notifications.ts';
import type { Shared } from './shared.ts';

type Watched = {
  outbox: Pick<Notifications, 'lastLookTs'>;
  holds: Pick<AccountThrottle, 'waitMs'>;
  listening: Pick<ListeningWatch, 'of'>;
};

/** Later than this is not on time. */
const lateMs = 60_000;

/** Has a watcher elsewhere see that devices are heard, and that what is due is done; where one is configured. */
export function startHeartbeatOf(shared: Shared, { outbox, holds, listening }: Watched): void {
  const { config, db, clock, log, releases } = shared;
  const { heartbeat } = config.notifications;
  if (heartbeat === null) return;
  const beating = startHeartbeat({
    ...heartbeat,
    log: log.child({ component: 'notifications' }),
    checks: {
      connectors: () =>
        config.connectors.every(({ id }) => listening.of(id)?.gaps.at(-1)?.toTs !== null),
      ticks: async () =>
        (await listLateAccounts(db)).every((accountId) => holds.waitMs(accountId) > 0),
      alarms: () => areAlarmsOnTime(db, clock()),
      deliveries: () => clock() - (outbox.lastLookTs() ?? 0) < lateMs,
    },
  });
  releases.add('heartbeat', () => beating.close());
}

/** Accounts with devices that time should have been told. Those over a quota have to wait. */
async function listLateAccounts(db: Sql): Promise<number[]> {
  const { rows } = await db.query<{ accountId: number }>(
    `select distinct account_id as "accountId"
       from (select account_id from device_due
              where coalesce(retry_at, due_at) < service_now() - interval '${lateMs} ms'
              order by coalesce(retry_at, due_at) limit 1000) as late`,
  );
  return rows.map(({ accountId }) => accountId);
}

async function areAlarmsOnTime(db: Sql, nowTs: number): Promise<boolean> {
  const { rows } = await db.query(
    `select from alarm
      where closed_at is null and next_at < ms_to_timestamp($1) limit 1`,
    [nowTs - lateMs],
  );
  return rows.length === 0;
}
