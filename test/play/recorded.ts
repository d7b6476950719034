import type { Alarm } from '../../src/alarms/rules.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { CopySource } from '../../src/db/database.ts';
import type { Sql } from '../../src/db/sql.ts';
import type { Profile } from '../../src/engine/compile.ts';
import { type Arrivals, playRecorded, storedHistory } from '../../src/play/history.ts';
import { Player } from '../../src/play/player.ts';

/** Events in the order in which they happened, and alarms, as they are compared. */
export type History = { events: unknown[]; alarms: string[] };

export const rules = { ringMaxAgeMs: 900_000, reportedForMs: 3_600_000 };

/** Whether people were told is not played. */
function told(event: object): unknown {
  const all = { notified: 0, notNotified: 0, ...event };
  const { notified: _notified, notNotified: _why, ...rest } = all;
  return JSON.parse(JSON.stringify(rest)) as unknown;
}

/** Alarms of one transaction have no order. */
const inOrder = (alarms: readonly object[]) => alarms.map((one) => JSON.stringify(one)).toSorted();

/** What was recorded of a device. */
export async function recorded(db: Sql, { deviceId }: DeviceIdentity): Promise<History> {
  const events = await db.query<{ type: string; ts: number; body: object }>(
    'select type, ts, body from event where device_id = $1 order by key collate "C"',
    [deviceId],
  );
  const alarms = await db.query(
    `select p_id as "pId", pu_id as "puId", st_id as "stId", ev_id as "evId", since_at as "sinceTs",
            last_firing_at as "lastFiringTs", firings, began_at as "beganTs",
            began_arrived_at as "beganArrivedTs", over_at as "overTs",
            over_arrived_at as "overArrivedTs", closed_at as "closedTs", closed_by as "closedBy"
       from alarm where device_id = $1 order by id`,
    [deviceId],
  );
  return {
    events: events.rows.map(({ type, ts, body }) => told({ type, ts, ...body })),
    alarms: inOrder(alarms.rows),
  };
}

function shown({ of, ...alarm }: Alarm) {
  const { pId, sinceTs, lastFiringTs, firings, beganTs, beganArrivedTs } = alarm;
  const { overTs, overArrivedTs, closedTs, closedBy } = alarm;
  const began = { sinceTs, lastFiringTs, firings, beganTs, beganArrivedTs };
  return { pId, ...of, ...began, overTs, overArrivedTs, closedTs, closedBy };
}

type PlayAll = {
  device: DeviceIdentity;
  profileOf: (pId: string) => Profile | undefined;
  fromTs: number;
  untilTs: number;
  /** Alarms that time alone closes have closed by then; absent: nobody closed any. */
  closedTs?: number;
  pieceMs?: number;
  /** Arrivals before which another player goes on, in order; absent: none. */
  cuts?: readonly number[];
};

type Played = History & { caveats: string[] };

/** What playing all that is kept of a device gives. */
export function played(
  db: CopySource,
  { device, profileOf, fromTs, untilTs, closedTs, pieceMs, cuts = [] }: PlayAll,
): Promise<Played> {
  const player = new Player({ device, limits: rules, rules });
  const play = (one: Player, arrivals: Arrivals) =>
    playRecorded(db, one, {
      deviceId: device.deviceId,
      arrivals,
      profileOf,
      ...(pieceMs !== undefined && { pieceMs }),
    });
  return inPieces(player, play, { device, profileOf, fromTs, untilTs, closedTs, cuts });
}

/** What a profile would have done that begins at `fromTs`. */
export function playedAs(
  db: CopySource,
  profile: Profile,
  { device, fromTs, untilTs, cuts = [] }: Omit<PlayAll, 'profileOf' | 'closedTs' | 'pieceMs'>,
): Promise<Played> {
  const player = new Player({ device, limits: rules, rules });
  player.begin(profile, fromTs);
  const senses = [...profile.senses.keys()];
  const play = async (one: Player, arrivals: Arrivals) => {
    for await (const piece of storedHistory(db).walk(device.deviceId, arrivals, senses))
      one.measure(piece, 0, piece.count);
  };
  const pieces = { device, profileOf: () => profile, fromTs, untilTs, closedTs: untilTs, cuts };
  return inPieces(player, play, pieces);
}

/** Plays up to each cut, and goes on with another player, from what the one before saved. */
async function inPieces(
  first: Player,
  play: (player: Player, arrivals: Arrivals) => Promise<void>,
  pieces: Omit<PlayAll, 'pieceMs' | 'closedTs' | 'cuts'> & {
    closedTs: number | undefined;
    cuts: readonly number[];
  },
): Promise<Played> {
  const { device, profileOf, fromTs, untilTs, closedTs, cuts } = pieces;
  const events: unknown[] = [];
  const alarms: Alarm[] = [];
  let player = first;
  let at = fromTs;
  for (const cut of cuts) {
    await play(player, { fromTs: at, untilTs: cut });
    at = cut;
    events.push(...player.events.map(told));
    alarms.push(...player.alarms.filter((one) => one.closedTs !== null));
    const saved = JSON.parse(JSON.stringify(player.save())) as ReturnType<Player['save']>;
    player = new Player({ device, limits: rules, rules });
    player.load(saved, profileOf);
  }
  await play(player, { fromTs: at, untilTs });
  if (closedTs !== undefined) player.end(closedTs);
  return {
    events: [...events, ...player.events.map(told)],
    alarms: inOrder([...alarms, ...player.alarms].map(shown)),
    caveats: [...player.caveats],
  };
}
