import type { AlarmSignal } from '../contract/alarm-signal.ts';
import type { Sql } from '../db/sql.ts';
import { listStoredReports, loadDevices, reportName, type LoadedDevice } from './load.ts';
import type { Ask, DecideDeps, Opened } from './ports.ts';
import { decide } from './rules/decide.ts';
import { beginDraft, type DeviceDraft, type PlannedAsk } from './rules/draft.ts';
import { settle } from './rules/settle.ts';
import { giveIds, saveDrafts, type Drafted } from './save-drafts.ts';

/**
 * Decides on the alarms of devices within the transaction that stores what happened to them: opens and closes
 * them, has people told, and sets `notified` and `notNotified` on the events of firings. Gives those it opened
 * within the quota: who commits the transaction counts them.
 */
export function createDecideAlarms(deps: DecideDeps) {
  return async (tx: Sql, signals: readonly AlarmSignal[]): Promise<Opened> => {
    const deviceIds = [...new Set(signals.map(({ device }) => device.deviceId))];
    const loaded = await loadDevices(tx, deviceIds);
    const stored = await listStoredReports(tx, reportsOf(signals));
    const at = { options: deps.rules, nowTs: deps.clock(), asks: [] as PlannedAsk[] };
    const { asks } = at;
    const drafted = readSignals(signals, loaded, stored, at);
    const opened = await giveIds(tx, drafted, deps);
    const told = asks.length > 0 ? await deps.tell(tx, toAsks(asks)) : [];
    const verdicts = [...drafted.values()].flatMap(({ draft }) => draft.verdicts);
    settle(asks, told, verdicts, at);
    await saveDrafts(tx, drafted, deps);
    return opened;
  };
}

/** Has the rules of each device read its signals, in the order in which they happened. */
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
    // It was removed meanwhile.
    if (!before) continue;
    if (signal.kind === 'fired' && signal.reportKey !== undefined) {
      const name = reportName({ deviceId, ts: signal.event.ts, key: signal.reportKey });
      // A redelivery is no firing.
      if (stored.has(name)) continue;
      stored.add(name);
    }
    const draft = drafted.get(deviceId)?.draft ?? beginDraft(before, at);
    drafted.set(deviceId, { draft, device: before, ts: signal.arrivedTs });
    decide(draft, signal);
  }
  return drafted;
}

function reportsOf(signals: readonly AlarmSignal[]) {
  return signals.flatMap((signal) =>
    signal.kind === 'fired' && signal.reportKey !== undefined
      ? [{ deviceId: signal.device.deviceId, ts: signal.event.ts, key: signal.reportKey }]
      : [],
  );
}

/** What notifications are asked, of announcements that are made. */
export function toAsks(asks: readonly PlannedAsk[]): Ask[] {
  return asks.map(({ draft, type, device, event, actions, name }) => ({
    type,
    device,
    event,
    actions,
    name,
    alarmId: draft?.alarm.alarmId ?? null,
    announcement: draft ? draft.alarm.announcement + 1 : 0,
    sinceTs: draft?.alarm.sinceTs ?? event.ts,
  }));
}
