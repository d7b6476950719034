import type { AlarmChangeKind, AlarmSignal } from '../contract/alarm.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { type ClosedAlarm, notifyResolved } from '../notifications/ended.ts';
import { type Ask, notify, type NotifyRules } from '../notifications/enqueue.ts';
import { dropPlanned } from '../notifications/outbox.ts';
import { listEnded } from './holds.ts';
import {
  type FindExtremes,
  type FindNewest,
  type FindWithin,
  keepExtremes,
  noteLate,
} from './values.ts';
import { countsAs } from './rows.ts';
import {
  type Alarm,
  type AlarmDraft,
  askPeople,
  beginDraft,
  closeDue,
  decide,
  type DeviceDraft,
  isDueAgain,
  nameKey,
  openAgain,
  type PlannedAsk,
  quietNow,
  quietUntil,
  type RuleOptions,
  settle,
} from './rules.ts';
import {
  type Changed,
  listStoredReports,
  loadDevices,
  type LoadedDevice,
  reportName,
  reserveIds,
  saveAlarms,
} from './store.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';

export type DecideDeps = {
  rules: RuleOptions;
  /** Who may be notified, and how much. */
  notifying: NotifyRules;
  clock: Clock;
  /** How many more events of the account may be recorded now. */
  eventsLeft: (accountId: number) => number;
  /** Whether streams may receive that an alarm goes on, which counts as this many events; if so, it counts them. */
  mayTellFirings: (accountId: number, events: number) => boolean;
};

/** How many recorded events a transaction's opened alarms count as, by account; to be counted after the commit. */
export type OpenedAlarms = ReadonlyMap<number, number>;

/** Decides on the alarms of devices, in the transaction that stores what happened to them. */
export class AlarmDecider {
  readonly #deps: DecideDeps;

  constructor(deps: DecideDeps) {
    this.#deps = deps;
  }

  /**
   * Opens and closes alarms, queues notifications, and sets `notified` and `notNotified` on the events of firings.
   * Returns what it opened within the quota; the caller counts that after the commit.
   */
  async decide(tx: Sql, signals: readonly AlarmSignal[]): Promise<OpenedAlarms> {
    const deps = this.#deps;
    const deviceIds = [...new Set(signals.filter(decides).map(({ device }) => device.deviceId))];
    const loaded = deviceIds.length === 0 ? null : await loadDevices(tx, deviceIds);
    // Whoever changes an alarm locks its device first.
    await noteLate(tx, signals.flatMap(lateOf));
    if (!loaded) return new Map();
    const stored = await listStoredReports(tx, reportsOf(signals));
    const nowTs = deps.clock();
    const at = { options: deps.rules, nowTs, asks: [] as PlannedAsk[] };
    const { asks } = at;
    const drafted = readSignals(signals, loaded, stored, at);
    const opened = await giveIds(tx, drafted, deps);
    const ending = endingOf(drafted);
    const results = await notify(tx, toAsks(asks), { ...deps.notifying, nowTs, ending });
    const verdicts = [...drafted.values()].flatMap(({ draft }) => draft.verdicts);
    settle(asks, results, verdicts, at);
    await saveDrafts(tx, drafted, { ...deps, nowTs });
    return opened;
  }
}

const decides = ({ kind }: AlarmSignal) => kind !== 'late';

const lateOf = (signal: AlarmSignal) =>
  signal.kind === 'late'
    ? signal.senses.map((sense) => ({ deviceId: signal.device.deviceId, ...sense }))
    : [];

/** Applies the rules to each device's signals, in the order in which they happened. */
function readSignals(
  signals: readonly AlarmSignal[],
  loaded: ReadonlyMap<number, LoadedDevice>,
  stored: Set<string>,
  at: Pick<DeviceDraft, 'options' | 'nowTs' | 'asks'>,
): Map<number, Drafted> {
  const drafted = new Map<number, Drafted>();
  for (const signal of signals) {
    const { deviceId } = signal.device;
    const before = loaded.get(deviceId);
    // The device was removed meanwhile.
    if (!before) continue;
    if (signal.kind === 'fired' && signal.reportKey !== undefined) {
      const name = reportName({ deviceId, ts: signal.event.ts, key: signal.reportKey });
      // A redelivery is not a firing.
      if (stored.has(name)) continue;
      stored.add(name);
    }
    const draft = drafted.get(deviceId)?.draft ?? beginDraft(before, at);
    drafted.set(deviceId, { draft, device: before, ts: signal.arrivedTs });
    decide(draft, signal);
  }
  return drafted;
}

/** A device as the rules left it and as it was read, and when its last signal happened (ms). */
type Drafted = {
  draft: DeviceDraft;
  device: LoadedDevice;
  ts: number;
};

const alarmsOf = ({ draft }: Pick<Drafted, 'draft'>): AlarmDraft[] => [
  ...draft.closed,
  ...draft.open.values(),
];

/** Alarms of which people were notified, and which have closed. What opens in this transaction is not among them. */
const endingOf = (drafted: ReadonlyMap<number, Drafted>): number[] =>
  [...drafted.values()].flatMap(({ draft }) =>
    draft.closed.flatMap(({ alarm }) => (alarm.announcement > 0 ? alarm.alarmId : [])),
  );

type SaveDeps = Pick<DecideDeps, 'notifying'> &
  Partial<Pick<DecideDeps, 'mayTellFirings'>> & { nowTs: WallMs };

/** Stores the results of the rules, and does what follows from closed alarms. */
async function saveDrafts(
  tx: Sql,
  drafted: ReadonlyMap<number, Drafted>,
  deps: SaveDeps,
): Promise<void> {
  const all = [...drafted.values()];
  await endSnoozes(tx, drafted);
  await saveAlarms(
    tx,
    all.flatMap((each) => changedOf(each, deps.mayTellFirings)),
  );
  await finishClosed(tx, all.flatMap(alarmsOf), deps);
}

/** Assigns numbers to opened alarms. Returns, by account, how many events they count as, as far as the quota allows. */
async function giveIds(
  tx: Sql,
  drafted: ReadonlyMap<number, Drafted>,
  deps: Pick<DecideDeps, 'eventsLeft'>,
): Promise<OpenedAlarms> {
  const opened = [...drafted.values()].flatMap((each) =>
    alarmsOf(each)
      .filter(({ isNew }) => isNew)
      .map(({ alarm }) => ({ alarm, deviceName: each.device.name })),
  );
  const ids = await reserveIds(tx, opened.length);
  const counts = new Map<number, number>();
  for (const [place, { alarm, deviceName }] of opened.entries()) {
    const { accountId } = alarm.device;
    const before = counts.get(accountId) ?? 0;
    alarm.alarmId = ids[place] ?? 0;
    // One that opens again is as it was when it opened first.
    alarm.isBeyondQuota ||= deps.eventsLeft(accountId) <= before;
    if (!alarm.isBeyondQuota) counts.set(accountId, before + countsAs(alarm, deviceName));
  }
  return counts;
}

/** Snoozes belong to events of one profile, and so do announcements from before alarms existed. */
async function endSnoozes(tx: Sql, drafted: ReadonlyMap<number, Drafted>): Promise<void> {
  const deviceIds = [...drafted]
    .filter(
      ([
        ,
        {
          draft: { isProfileOver, before },
        },
      ]) => {
        return isProfileOver && (before.snoozes.length > 0 || before.carried !== null);
      },
    )
    .map(([deviceId]) => deviceId);
  if (deviceIds.length === 0) return;
  await tx.query(
    `with carried as (delete from alarm_upgrade where device_id = any($1::bigint[]))
     delete from alarm_snooze where device_id = any($1::bigint[])`,
    [deviceIds],
  );
}

function changedOf(
  { draft, device, ts }: Drafted,
  mayTell: DecideDeps['mayTellFirings'] = () => true,
): Changed[] {
  const snoozes = draft.isProfileOver ? [] : draft.before.snoozes;
  return [...alarmsOf({ draft }), ...draft.wereLasting]
    .filter(({ changes, isTouched }) => changes.length > 0 || isTouched)
    .map(({ alarm, isNew, changes: all }) => {
      // Measurements can cause any number of these, so streams receive them only as far as the quotas allow.
      const isTold =
        !alarm.isBeyondQuota &&
        (!all.every(goesOn) || mayTell(alarm.device.accountId, countsAs(alarm, device.name)));
      const changes = isTold ? all : [];
      const snooze = snoozes.find(({ of }) => nameKey(of) === nameKey(alarm.of));
      const context = {
        deviceName: device.name,
        snoozed: quietNow(snooze, ts),
        muted: quietNow(device.mute, ts),
      };
      return { alarm, isNew, changes, context, ts };
    });
}

/** The alarm stays open: if values go up and down, such a change comes with every measurement. */
const goesOn = (change: AlarmChangeKind) => change === 'fired' || change === 'ending';

/**
 * Drops planned messages of closed alarms, and notifies those who should hear that they are over. `notify` has locked
 * their counters.
 */
async function finishClosed(
  tx: Sql,
  drafts: readonly AlarmDraft[],
  { notifying, nowTs }: SaveDeps,
): Promise<void> {
  const closed = drafts.flatMap(({ alarm }): ClosedAlarm[] => {
    const { alarmId, closedBy, closedTs, announcement, movedTo } = alarm;
    const { beganTs, overTs, filledTs } = alarm;
    if (closedBy === null || closedTs === null || announcement === 0) return [];
    const lasted = { beganTs, overTs, filledTs, lastedWithState: movedTo !== null };
    return [{ alarmId, closedBy, closedTs, ...lasted }];
  });
  const alarmIds = closed.map(({ alarmId }) => alarmId);
  await dropPlanned(tx, alarmIds);
  await notifyResolved(tx, closed, { quotasOf: notifying.quotasOf, nowTs });
}

function reportsOf(signals: readonly AlarmSignal[]) {
  return signals.flatMap((signal) =>
    signal.kind === 'fired' && signal.reportKey !== undefined
      ? [{ deviceId: signal.device.deviceId, ts: signal.event.ts, key: signal.reportKey }]
      : [],
  );
}

/** The asks for notifications. Each announcement of an alarm has a number. */
function toAsks(asks: readonly PlannedAsk[]): Ask[] {
  return asks.map(({ draft, type, device, event, actions, name }) => ({
    type,
    device,
    event,
    actions,
    name,
    alarmId: draft?.alarm.alarmId ?? null,
    announcement: draft ? draft.alarm.announcement + 1 : 0,
    sinceTs: draft?.alarm.beganTs ?? draft?.alarm.sinceTs ?? event.ts,
  }));
}

/** What the timer knows besides the alarm's row; ms. */
type LookAt = {
  nowTs: WallMs;
  ringMaxAgeMs: number;
  /** Notifications of its event are suppressed until then; null if they are not. */
  quietUntilTs: number | null;
  /** The newest `ts` of its senses; null if nothing is stored of them. */
  newestTs: number | null;
};

/** What the timer does. `wait`: it looks again at `nextTs`, if at all. */
type Look =
  | { do: 'tell' }
  | { do: 'repeat' }
  | { do: 'wait'; nextTs: number | null; lookedTs?: number; isQuiet?: true };

/** What is due for an open alarm whose time has come. */
function lookAt(alarm: Alarm, at: LookAt): Look {
  const { tells, acknowledgedTs, announcedTs, repeatMs, endsTs } = alarm;
  if (tells === 'silent-alarm' || acknowledgedTs !== null) return { do: 'wait', nextTs: null };
  // The alarm's condition has ended. The alarm closes then, unless another firing comes first.
  if (endsTs !== null) return { do: 'wait', nextTs: endsTs };
  if (announcedTs !== null && repeatMs === null) return { do: 'wait', nextTs: null };
  if (at.quietUntilTs !== null) return { do: 'wait', nextTs: at.quietUntilTs, isQuiet: true };
  if (announcedTs !== null) return { do: 'repeat' };
  return backlogOf(alarm, at) ?? { do: 'tell' };
}

/**
 * While the senses' newest timestamps advance faster than time does, a backlog is coming in, and its end is not known
 * yet.
 */
function backlogOf({ waitsForFresh, lookedTs, nextTs }: Alarm, at: LookAt): Look | null {
  const { nowTs, ringMaxAgeMs, newestTs } = at;
  if (!waitsForFresh || newestTs === null) return null;
  const sinceMs = ringMaxAgeMs + Math.max(0, nowTs - (nextTs ?? nowTs));
  if (newestTs - (lookedTs ?? newestTs) <= 2 * sinceMs) return null;
  return { do: 'wait', nextTs: nowTs + ringMaxAgeMs, lookedTs: newestTs };
}

/** Neither the device nor the account was removed. */
const isThere = `
  exists (select from device d join account a on a.id = d.account_id
           where d.id = alarm.device_id and a.removed_at is null)`;

/** Devices with an alarm whose time has come: to announce it, to look at it again, or to close it. */
async function listDueDevices(
  sql: Sql,
  { nowTs, limit }: { nowTs: WallMs; limit: number },
): Promise<number[]> {
  const { rows } = await sql.query<{ id: number }>({
    name: 'alarms-due-devices',
    text: `
      select device_id as id
        from (select device_id from alarm
               where closed_at is null and next_at <= ms_to_timestamp($1) and ${isThere}
               order by next_at limit $2) as due
       union
      select device_id
        from (select device_id from alarm
               where closed_at is null
                 and (ends_at is not null or expires_at is not null)
                 and least(ends_at, expires_at) <= ms_to_timestamp($1) and ${isThere}
               order by least(ends_at, expires_at) limit $2) as over
       union
      select device_id
        from (select device_id from alarm
               where again_at <= ms_to_timestamp($1) and ${isThere}
               order by again_at limit $2) as again
       order by id
       limit $2`,
    values: [nowTs, limit],
  });
  return rows.map(({ id }) => id);
}

/**
 * Locks those devices that no other transaction has locked, until this one ends. For the others, another process is at
 * work, or measurements are being stored, which may change what is due.
 */
async function claimDevices(tx: Sql, deviceIds: readonly number[]): Promise<number[]> {
  const { rows } = await tx.query<{ id: number }>({
    name: 'alarms-claim-devices',
    text: `
      select id from device where id = any($1::bigint[]) and account_id is not null order by id
         for no key update skip locked`,
    values: [deviceIds],
  });
  return rows.map(({ id }) => id);
}

/** When the timer looks next; clients see no change. */
type NextLook = {
  alarmId: number;
  nextTs: number | null;
  lookedTs: number | null;
  /** Why nobody was notified. */
  notNotified: string | null;
};

async function saveLooks(tx: Sql, looks: readonly NextLook[]): Promise<void> {
  if (looks.length === 0) return;
  await tx.query({
    name: 'alarms-save-looks',
    text: `
      update alarm a
         set next_at = ms_to_timestamp(l.next_ts), looked_ts = l.looked_ts,
             not_notified = l.not_notified
        from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[])
          as l (id, next_ts, looked_ts, not_notified)
       where a.id = l.id`,
    values: [
      looks.map(({ alarmId }) => alarmId),
      looks.map(({ nextTs }) => nextTs),
      looks.map(({ lookedTs }) => lookedTs),
      looks.map(({ notNotified }) => notNotified),
    ],
  });
}

/**
 * The account's recipients have changed, so retry the alarms that could reach nobody. Alarms that began in a backlog
 * still wait for a fresh measurement.
 */
export async function wakeAlarms(tx: Sql, accountId: number, nowTs: WallMs): Promise<void> {
  await tx.query(
    `with waiting as (
       select id from alarm
        where account_id = $1 and closed_at is null and announced_at is null
          and acknowledged_at is null and tells = 'alarm' and not waits_for_fresh
          and next_at > ms_to_timestamp($2)
        order by id for no key update
     )
     update alarm a set next_at = ms_to_timestamp($2) from waiting w where a.id = w.id`,
    [accountId, nowTs],
  );
}

type RunAlarmsDeps = Pick<DecideDeps, 'rules' | 'notifying'> & {
  db: Database;
  /** The newest timestamp of each of these senses that has measured something; ms. */
  findNewestTs: (tx: Sql, senses: { deviceId: number; sId: string }[]) => Promise<NewestTs>;
  findNewest: FindNewest;
  findExtremes: FindExtremes;
  findWithin: FindWithin;
  /** Alarms of these devices have changed; the change is committed. */
  onChanged: (changed: ChangedDevices) => void;
};

type ChangedDevices = { accountIds: number[]; deviceIds: number[] };

/** By `<deviceId> <sId>`. */
type NewestTs = ReadonlyMap<string, number>;

export const senseKey = ({ deviceId, sId }: { deviceId: number; sId: string }): string =>
  `${deviceId} ${sId}`;

// One transaction locks at most this many devices: their measurements wait for it.
const devicesAtOnce = 50;

/**
 * Does what is due for alarms: closes, announces and repeats them. `isMore`: there may be more, because as many devices
 * were due as fit into one transaction.
 */
async function runDue(deps: RunAlarmsDeps, nowTs: WallMs): Promise<{ isMore: boolean }> {
  const due = await listDueDevices(deps.db, { nowTs, limit: devicesAtOnce });
  if (due.length === 0) return { isMore: false };
  const { claimed, changed } = await deps.db.transaction(async (tx) => {
    const deviceIds = await claimDevices(tx, due);
    const none: ChangedDevices = { accountIds: [], deviceIds: [] };
    const found = deviceIds.length > 0 ? await lookAtDevices(tx, deps, { deviceIds, nowTs }) : none;
    return { claimed: deviceIds.length, changed: found };
  });
  if (changed.deviceIds.length > 0) deps.onChanged(changed);
  // Devices that others have locked are looked at again with the next poll.
  return { isMore: claimed > 0 && due.length >= devicesAtOnce };
}

async function lookAtDevices(
  tx: Sql,
  deps: RunAlarmsDeps,
  { deviceIds, nowTs }: { deviceIds: number[]; nowTs: WallMs },
): Promise<ChangedDevices> {
  const loaded = await loadDevices(tx, deviceIds);
  const newest = await deps.findNewestTs(tx, sensesOf([...loaded.values()], nowTs));
  const again = [...loaded.values()].flatMap(({ lasting }) =>
    lasting.filter((alarm) => isDueAgain(alarm, nowTs)),
  );
  const ended = await listEnded(tx, deps.findNewest, again, nowTs);
  const asks: PlannedAsk[] = [];
  const repeats: Ask[] = [];
  const looks: NextLook[] = [];
  const drafted = new Map<number, Drafted>();
  for (const [deviceId, device] of loaded) {
    const draft = beginDraft(device, { options: deps.rules, nowTs, asks });
    drafted.set(deviceId, { draft, device, ts: nowTs });
    closeDue(draft, nowTs);
    openAgain(draft, nowTs, ({ alarmId }) => ended.has(alarmId));
  }
  // What opens again counted when it opened first.
  await giveIds(tx, drafted, { eventsLeft: () => Infinity });
  for (const { draft } of drafted.values())
    for (const one of draft.open.values())
      if ((one.alarm.nextTs ?? Infinity) <= nowTs)
        lookAtOne(draft, one, { deps, nowTs, newest, repeats, looks });
  const all = [...toAsks(asks), ...repeats];
  const ending = endingOf(drafted);
  const results = await notify(tx, all, { ...deps.notifying, nowTs, ending });
  settle(asks, results.slice(0, asks.length), [], { options: deps.rules, nowTs });
  await saveDrafts(tx, drafted, { notifying: deps.notifying, nowTs });
  await saveLooks(tx, looks);
  const changed = [...drafted.values()].flatMap(({ draft }) =>
    [...draft.closed, ...draft.open.values()].filter(({ changes }) => changes.length > 0),
  );
  return {
    accountIds: [...new Set(changed.map(({ alarm }) => alarm.device.accountId))],
    deviceIds: [...new Set(changed.map(({ alarm }) => alarm.device.deviceId))],
  };
}

function lookAtOne(
  device: DeviceDraft,
  draft: AlarmDraft,
  { deps, nowTs, newest, repeats, looks }: LookContext,
): void {
  const { alarm } = draft;
  const { device: identity, event, actions, eventName: name, of } = alarm;
  const newestTs = newestOf(alarm.sIds, identity.deviceId, newest);
  const { ringMaxAgeMs } = deps.rules;
  const quietUntilTs = quietUntil(device, of);
  const look = lookAt(alarm, { nowTs, ringMaxAgeMs, quietUntilTs, newestTs });
  if (look.do === 'tell') {
    askPeople(device, draft, { device: identity, event, actions, name, isFiring: false });
    return;
  }
  const { alarmId, announcement, repeatMs, lookedTs, notNotified } = alarm;
  if (look.do === 'repeat') {
    const lastHeardTs = newestTs ?? event.ts;
    const sinceTs = alarm.beganTs ?? alarm.sinceTs;
    const about = { type: 'repeated' as const, alarmId, announcement, sinceTs, lastHeardTs };
    repeats.push({ ...about, device: identity, event, actions, name });
    looks.push({ alarmId, nextTs: nowTs + (repeatMs ?? ringMaxAgeMs), lookedTs, notNotified });
    return;
  }
  const isSnoozed = look.isQuiet === true && alarm.announcedTs === null;
  looks.push({
    alarmId,
    nextTs: look.nextTs,
    lookedTs: look.lookedTs ?? lookedTs,
    notNotified: isSnoozed ? 'snoozed' : notNotified,
  });
}

type LookContext = {
  deps: RunAlarmsDeps;
  nowTs: WallMs;
  newest: NewestTs;
  repeats: Ask[];
  looks: NextLook[];
};

const sensesOf = (devices: readonly LoadedDevice[], nowTs: WallMs) =>
  devices.flatMap(({ open }) =>
    open
      .filter(({ nextTs }) => (nextTs ?? Infinity) <= nowTs)
      .flatMap(({ device: { deviceId }, sIds }) => sIds.map((sId) => ({ deviceId, sId }))),
  );

function newestOf(sIds: readonly string[], deviceId: number, newest: NewestTs): number | null {
  const times = sIds.flatMap((sId) => newest.get(senseKey({ deviceId, sId })) ?? []);
  return times.length === 0 ? null : Math.max(...times);
}

export type TimerOptions = RunAlarmsDeps & {
  clock: Clock;
  /** How often to look for due alarms. */
  pollIntervalMs: number;
  onError: (error: unknown) => void;
};

type AlarmTimer = {
  /** When it last did all that was due, ms; null if it has not yet. */
  lastTs: () => number | null;
  /** Waits for the work under way. */
  close: () => Promise<void>;
};

/**
 * Looks for due alarms until it is closed. Several processes may run it: each takes devices that no other has locked.
 */
export function startAlarmTimer(options: TimerOptions): AlarmTimer {
  const { clock, pollIntervalMs, onError } = options;
  let running: Promise<void> | null = null;
  let keeping: Promise<void> | null = null;
  let closed = false;
  let lastTs: number | null = null;

  async function runAll(): Promise<void> {
    const nowTs = clock();
    let isMore = true;
    while (isMore && !closed) ({ isMore } = await runDue(options, nowTs));
    lastTs = nowTs;
  }

  /** Beside the rest, because a range of measurements takes long to read, and nobody waits for its extreme. */
  function keep(): void {
    keeping ??= keepExtremes(options.db, options, clock(), onError)
      .catch(onError)
      .finally(() => {
        keeping = null;
      });
  }

  function look(): void {
    if (closed) return;
    keep();
    if (running) return;
    running = runAll()
      .catch(onError)
      .finally(() => {
        running = null;
      });
  }

  const timer = setInterval(look, pollIntervalMs);
  look();
  return {
    lastTs: () => lastTs,
    async close() {
      closed = true;
      clearInterval(timer);
      await Promise.all([running, keeping]);
    },
  };
}
