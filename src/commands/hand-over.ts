/**
 * How a command gets from the request to the device's answer. Each step is the function of that name.
 *
 *   src/commands
 *    1. addCommand          store.ts             checks the quotas and stores it
 *    2. publish `due`       bus                  tells every process that something may be due to the device
 *   connector
 *    3. due                 device/downlinks.ts  asks what to send a connected device; polls and bridges ask likewise
 *       take                hand-over.ts         (here) takes the next one, so that no other connection takes it too
 *       send                mqtt/subscribe.ts    as a message
 *    4. delivered           hand-over.ts         (here) the device has acknowledged it: it is `sent`
 *   src/ingest: the device's answer is processed like any message (ingest/ingest.ts)
 *    5. applyCommandAnswer  rules/commands.ts    its next state, by the transitions of contract/command.ts
 *       saveCommandAnswers  answers.ts           stored in the transaction that acknowledges the answer
 *    6. publish `due`       ingest/after-commit  the next one may be taken
 */

import type { Bus } from '../bus/bus.ts';
import { commandTransitions, waitingStates } from '../contract/command.ts';
import type { AskedHow, DeviceIdentity, Downlink } from '../contract/uplink.ts';
import { type Sql, textList } from '../db/sql.ts';
import { coalesce } from '../lib/coalesce.ts';

/** How long the next command waits for the answer to the one before, from when that was handed over. */
const answerMs = 60_000;

export type CommandHandOver = {
  /** Takes the command to send the device now; null: none. Whoever takes it sends it, or it is due again later. */
  take(device: DeviceIdentity, how: AskedHow): Promise<Downlink | null>;
  /** The device has acknowledged the command with this number. */
  delivered(device: DeviceIdentity, id: number): Promise<void>;
  /** The device says that it has subscribed: hands it over again what it has not answered. */
  offerAgain(device: DeviceIdentity): Promise<void>;
};

export function createCommandHandOver({ db, bus }: { db: Sql; bus: Bus }): CommandHandOver {
  // A request is a key of its own: two connections of a device may ask in the same moment.
  const takes = coalesce({
    load: (asked: Asked[]) => takeNext(db, asked),
    maxKeys: 100,
    parallel: 2,
  });
  const acknowledged = coalesce({
    load: async (handed: Handed[]) => {
      const sent = await markSent(db, handed);
      for (const { accountId, commandId } of sent) bus.publish('command', { accountId, commandId });
      return new Map<Handed, true>();
    },
  });
  return {
    take: ({ deviceId }, how) => takes.find({ deviceId, how }),
    delivered: async ({ deviceId }, id) => void (await acknowledged.find({ deviceId, id })),
    async offerAgain({ deviceId, uuid }) {
      await forgetHandOvers(db, deviceId);
      bus.publish('due', { uuid, topic: 'command' });
    },
  };
}

type Asked = { deviceId: number; how: AskedHow };
type Handed = { deviceId: number; id: number };

type TakenRow = {
  deviceId: number;
  id: number;
  commandId: string;
  name: string;
  params: string | null;
  createdTs: number;
  expiresTs: number;
};

const waiting = textList(waitingStates);

/**
 * For each device the first command that it was not handed yet, unless the answer to another one is waited for. Which
 * were not handed depends on how it asks: all, if it has subscribed; over HTTP, those that it has not acknowledged;
 * else those that nobody took since it subscribed, or that somebody took and lost: a connection closes before
 * `answerMs` without an acknowledgement.
 */
async function takeNext(db: Sql, asked: readonly Asked[]): Promise<Map<Asked, Downlink>> {
  // The most that one of several in the same moment asks for. The others get nothing, as if they came a little later.
  const byDevice = new Map<number, Asked>();
  for (const one of asked) {
    const other = byDevice.get(one.deviceId);
    if (!other || ranks[one.how] > ranks[other.how]) byDevice.set(one.deviceId, one);
  }
  const wanted = [...byDevice.values()];
  const { rows } = await db.query<TakenRow>({
    name: 'commands-take',
    text: `
      with open as materialized (
        select c.id, c.device_id, c.handed_at,
               case n.how when 2 then true
                          when 1 then c.state = 'queued' or c.handed_at is null
                          else c.handed_at is null or (c.state = 'queued' and ${isOver}) end as is_free,
               coalesce(not ${isOver}, false) as is_awaited
          from unnest($1::bigint[], $2::integer[]) as n (device_id, how)
          join command c on c.device_id = n.device_id
                        and c.state in ${waiting} and c.expires_at > service_now()
         order by c.id
           for no key update of c
      ), next as (
        select min(id) filter (where is_free) as id
          from open
         group by device_id
        having not coalesce(bool_or(is_awaited and not is_free), false)
      ), changed as (
        update command c
           set handed_at = case when c.id = next.id then service_now() end,
               handed = c.handed + case when c.id = next.id then 1 else 0 end
          from open left join next on next.id = open.id
         where c.id = open.id and open.is_free and (next.id is not null or c.handed_at is not null)
        returning c.*
      )
      select changed.device_id as "deviceId", changed.id, uuid as "commandId", name, params,
             created_at as "createdTs", expires_at as "expiresTs"
        from changed join next on next.id = changed.id`,
    values: [wanted.map(({ deviceId }) => deviceId), wanted.map(({ how }) => ranks[how])],
  });
  const taken = new Map<Asked, Downlink>();
  for (const row of rows) {
    const one = byDevice.get(row.deviceId);
    if (one) taken.set(one, toDownlink(row));
  }
  return taken;
}

const ranks: Record<AskedHow, number> = { due: 0, again: 1, subscribed: 2 };

/** SQL: whether the answer to the command is not waited for any more; null: it was not handed over. */
const isOver = `(c.handed_at + interval '${answerMs} ms' <= service_now())`;

function toDownlink({ id, commandId, name, params, createdTs, expiresTs }: TakenRow): Downlink {
  const told = params === null ? {} : { params: JSON.parse(params) as unknown };
  return {
    topic: 'command',
    payload: { commandId, name, ...told, sentTs: createdTs, expiresTs },
    command: { id, expiresTs, answerMs },
  };
}

async function markSent(
  db: Sql,
  handed: readonly Handed[],
): Promise<{ accountId: number; commandId: string }[]> {
  const { rows } = await db.query<{ accountId: number; commandId: string }>({
    name: 'commands-mark-sent',
    text: `
      update command c
         set state = 'sent', sent_at = greatest(created_at, service_now()), version = version + 1
        from (select k.id
                from unnest($1::bigint[], $2::bigint[]) as n (device_id, id)
                -- A device acknowledges over HTTP what it claims to have: only its own count.
                join command k on k.id = n.id and k.device_id = n.device_id
               order by k.id
                 for no key update of k) as n
       where c.id = n.id and c.state in ${textList(commandTransitions.sent)}
         and c.expires_at > service_now()
      returning c.account_id as "accountId", c.uuid as "commandId"`,
    values: [handed.map(({ deviceId }) => deviceId), handed.map(({ id }) => id)],
  });
  return rows;
}

async function forgetHandOvers(db: Sql, deviceId: number): Promise<void> {
  await db.query({
    name: 'commands-offer-again',
    text: `
      update command c
         set handed_at = null
        from (select id from command where device_id = $1 and state in ${waiting}
               order by id for no key update) as n
       where c.id = n.id and c.handed_at is not null`,
    values: [deviceId],
  });
}
