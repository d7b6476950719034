import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { toAsks } from './decide-alarms.ts';
import { loadDevices, type LoadedDevice } from './load.ts';
import type { Ask, Telling } from './ports.ts';
import { askPeople } from './rules.ts';
import { closeDue } from './rules/close.ts';
import {
  type AlarmDraft,
  beginDraft,
  type DeviceDraft,
  type PlannedAsk,
  quietUntil,
  type RuleOptions,
} from './rules/draft.ts';
import { settle } from './rules/settle.ts';
import { type Drafted, saveDrafts } from './save-drafts.ts';
import { lookAt } from './timer/look.ts';
import { claimDevices, listDueDevices, type NextLook, saveLooks } from './timer/queries.ts';

export type RunAlarmsDeps = Telling & {
  db: Database;
  rules: RuleOptions;
  /** The newest time of each of these senses that has measured something; ms. */
  findNewestTs: (tx: Sql, senses: { deviceId: number; sId: string }[]) => Promise<NewestTs>;
  /** Alarms of these devices were changed, and that is committed. */
  onChanged: (changed: ChangedDevices) => void;
};

export type ChangedDevices = { accountIds: number[]; deviceIds: number[] };

/** By `<deviceId> <sId>`. */
export type NewestTs = ReadonlyMap<string, number>;

export const senseKey = ({ deviceId, sId }: { deviceId: number; sId: string }): string =>
  `${deviceId} ${sId}`;

// As many as one transaction may keep from storing measurements for a moment.
const devicesAtOnce = 50;

/**
 * Does what is due of alarms: closes them, tells of them, repeats. Gives how many devices it looked at; where
 * it is as many as fit into one transaction there may be more.
 */
export async function runDue(deps: RunAlarmsDeps, nowTs: number): Promise<{ isMore: boolean }> {
  const due = await listDueDevices(deps.db, { nowTs, limit: devicesAtOnce });
  if (due.length === 0) return { isMore: false };
  const { claimed, changed } = await deps.db.transaction(async (tx) => {
    const deviceIds = await claimDevices(tx, due);
    const none: ChangedDevices = { accountIds: [], deviceIds: [] };
    const found = deviceIds.length > 0 ? await lookAtDevices(tx, deps, { deviceIds, nowTs }) : none;
    return { claimed: deviceIds.length, changed: found };
  });
  if (changed.deviceIds.length > 0) deps.onChanged(changed);
  // Those that others hold are looked at again with the next turn.
  return { isMore: claimed > 0 && due.length >= devicesAtOnce };
}

async function lookAtDevices(
  tx: Sql,
  deps: RunAlarmsDeps,
  { deviceIds, nowTs }: { deviceIds: number[]; nowTs: number },
): Promise<ChangedDevices> {
  const loaded = await loadDevices(tx, deviceIds);
  const newest = await deps.findNewestTs(tx, sensesOf([...loaded.values()], nowTs));
  const asks: PlannedAsk[] = [];
  const repeats: Ask[] = [];
  const looks: NextLook[] = [];
  const drafted = new Map<number, Drafted>();
  for (const [deviceId, device] of loaded) {
    const draft = beginDraft(device, { options: deps.rules, nowTs, asks });
    drafted.set(deviceId, { draft, device, ts: nowTs });
    closeDue(draft, nowTs);
    for (const one of draft.open.values())
      if ((one.alarm.nextTs ?? Infinity) <= nowTs)
        lookAtOne(draft, one, { deps, nowTs, newest, repeats, looks });
  }
  const all = [...toAsks(asks), ...repeats];
  const told = all.length > 0 ? await deps.tell(tx, all) : [];
  settle(asks, told.slice(0, asks.length), [], { options: deps.rules, nowTs });
  await saveDrafts(tx, drafted, deps);
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
  const { alarmId, announcement, sinceTs, repeatMs, lookedTs, notNotified } = alarm;
  if (look.do === 'repeat') {
    const lastHeardTs = newestTs ?? event.ts;
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
  nowTs: number;
  newest: NewestTs;
  repeats: Ask[];
  looks: NextLook[];
};

const sensesOf = (devices: readonly LoadedDevice[], nowTs: number) =>
  devices.flatMap(({ open }) =>
    open
      .filter(({ nextTs }) => (nextTs ?? Infinity) <= nowTs)
      .flatMap(({ device: { deviceId }, sIds }) => sIds.map((sId) => ({ deviceId, sId }))),
  );

function newestOf(sIds: readonly string[], deviceId: number, newest: NewestTs): number | null {
  const times = sIds.flatMap((sId) => newest.get(senseKey({ deviceId, sId })) ?? []);
  return times.length === 0 ? null : Math.max(...times);
}
