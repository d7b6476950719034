import type { AlarmSignal } from '../../contract/alarm-signal.ts';
import type { NewEvent } from '../../contract/event.ts';
import type { Sql } from '../../db/sql.ts';
import type { Transaction } from '../../db/transaction.ts';
import { saveDue } from './due.ts';
import { MillisecondFull } from './millisecond-full.ts';
import { countUnchanged, holdUnchanged, listRemovedAccounts, lockIngest } from '../write.ts';
import { saveRuntimes, saveStates } from './save-states.ts';
import { saveClocks } from '../save-states.ts';
import type { Plan } from './plan.ts';
import type { Changes, DisplayRow, ProfileAnswerRow, RejectionRow } from '../rules/changes.ts';
import type { MeasurementRow } from '../rules/measurement-row.ts';

/** What other features write inside the transaction of a batch. */
export type Writers = {
  /** Throws a unique violation where a sense has a value in one of these milliseconds already. */
  addMeasurements: (tx: Transaction, rows: MeasurementRow[]) => Promise<void>;
  /** Stores what is not there yet; gives those for which there is no room. `onAdded`: told of each new one. */
  storeMeasurements: (
    tx: Transaction,
    rows: MeasurementRow[],
    onAdded?: (row: MeasurementRow) => void,
  ) => Promise<MeasurementRow[]>;
  /** Gives the events that were not there before. */
  recordEvents: (tx: Sql, events: NewEvent[]) => Promise<NewEvent[]>;
  keepRejections: (tx: Sql, rows: RejectionRow[]) => Promise<void>;
  settleProfiles: (tx: Sql, changes: ProfileAnswerRow[]) => Promise<void>;
  /** Notes in their messages what acknowledges them. */
  keepDisplays: (tx: Sql, rows: Iterable<DisplayRow>) => Promise<void>;
  replaceConfigurations: (tx: Sql, rows: Changes['configurations']) => Promise<void>;
  /**
   * Of what is signalled decides whom it is told; says so on the events, which are recorded after it. Other
   * transactions with signals of these devices wait for this one. Gives the alarms that it opened, by account.
   */
  decideAlarms: (tx: Sql, signals: AlarmSignal[]) => Promise<OpenedAlarms>;
};

export type OpenedAlarms = ReadonlyMap<number, number>;
const noneOpened: OpenedAlarms = new Map();

/** What a transaction has added that counts once it is committed. */
export type Written = {
  recorded: NewEvent[];
  opened: OpenedAlarms;
  /** The measurements that were not there before; null: all, or nobody asks. */
  added: ReadonlySet<MeasurementRow> | null;
};

/** A device changed since it was read: the plan is void, and is made again from what is there now. */
export class StaleContext extends Error {
  /** Those of which it was told meanwhile that they changed. */
  readonly forgotten = new Set<number>();
}

/**
 * Writes a plan within one transaction; gives what is new. `areNew`: no measurement of it
 * is expected to be there already; a unique violation where one is. Throws `StaleContext`, `MillisecondFull`.
 * The statements do not wait for each other's answers; the server takes them in this order. But where alarms
 * are to be decided, these come between the rows of devices and all others.
 */
export async function write(
  tx: Transaction,
  plan: Plan,
  areNew: boolean,
  writers: Writers,
): Promise<Written> {
  const { rows } = plan;
  const added = !areNew && rows.outcomes.size > 0 ? new Set<MeasurementRow>() : null;
  const write = () => writeRows(tx, rows, areNew, added, writers);
  if (rows.signals.length === 0) {
    const [areFresh, recorded] = await Promise.all([writeDevices(tx, plan), write()]);
    if (!areFresh) throw new StaleContext();
    return { recorded, opened: noneOpened, added };
  }
  if (!(await writeDevices(tx, plan))) throw new StaleContext();
  const opened = await writers.decideAlarms(tx, rows.signals);
  return { recorded: await write(), opened, added };
}

/** Writes or holds the rows of devices: whether all are as they were read. */
async function writeDevices(tx: Transaction, plan: Plan): Promise<boolean> {
  const { moved, evaluated, held, unchanged, due } = plan;
  const [, removed, movedNow, evaluatedNow, heldNow, unchangedNow] = await Promise.all([
    lockIngest(tx),
    listRemovedAccounts(tx, accountIdsOf(plan)),
    moved.length > 0 ? saveStates(tx, moved) : 0,
    evaluated.length > 0 ? saveRuntimes(tx, evaluated) : 0,
    held.length > 0 ? holdUnchanged(tx, held) : 0,
    unchanged.length > 0 ? countUnchanged(tx, unchanged) : 0,
    // Behind the devices' rows: who changes them in this order waits for nobody who waits for it.
    due.length > 0 && saveDue(tx, due),
  ]);
  if (removed.length > 0) forgetDevicesOf(plan, new Set(removed));
  return (
    removed.length === 0 &&
    movedNow === moved.length &&
    evaluatedNow === evaluated.length &&
    heldNow === held.length &&
    unchangedNow === unchanged.length
  );
}

/** Of the devices for which something is written. */
const accountIdsOf = ({ moved, evaluated, held, unchanged }: Plan): number[] => [
  ...new Set([moved, evaluated, held, unchanged].flat().map(({ device }) => device.accountId)),
];

/** What is remembered of them says that they are there: they are read again, and found to be gone. */
function forgetDevicesOf({ works }: Plan, accountIds: ReadonlySet<number>): void {
  for (const { queue } of works) if (accountIds.has(queue.accountId)) queue.context = null;
}

/** Gives the events that are new. */
async function writeRows(
  tx: Transaction,
  rows: Changes,
  areNew: boolean,
  added: Set<MeasurementRow> | null,
  writers: Writers,
): Promise<NewEvent[]> {
  const [recorded] = await Promise.all([
    rows.events.length > 0 ? writers.recordEvents(tx, rows.events) : [],
    rows.measurements.length > 0 &&
      storeMeasurements(tx, rows.measurements, areNew, added, writers),
    rows.configurations.length > 0 && writers.replaceConfigurations(tx, rows.configurations),
    rows.profiles.length > 0 && writers.settleProfiles(tx, rows.profiles),
    rows.rejections.length > 0 && writers.keepRejections(tx, rows.rejections),
    rows.clocks.size > 0 && saveClocks(tx, rows.clocks.values()),
    rows.displays.size > 0 && writers.keepDisplays(tx, rows.displays.values()),
  ]);
  return recorded;
}

async function storeMeasurements(
  tx: Transaction,
  rows: MeasurementRow[],
  areNew: boolean,
  added: Set<MeasurementRow> | null,
  writers: Writers,
): Promise<void> {
  if (areNew) return writers.addMeasurements(tx, rows);
  const onAdded = added ? (row: MeasurementRow) => void added.add(row) : undefined;
  const full = await writers.storeMeasurements(tx, rows, onAdded);
  if (full.length > 0) throw new MillisecondFull(full);
}
