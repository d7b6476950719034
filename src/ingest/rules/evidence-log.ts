import type { Measurement } from '../../contract/values.ts';
import type { Profile } from '../../engine/compile.ts';
import { encodeMeasurements } from '../../engine/runtime-codec.ts';
import type { Runtime } from '../../engine/runtime.ts';
import { type DeviceState, evidenceLength, type EvidenceLog } from './model.ts';

/*
 * How a device's evidence is stored. Short evidence is written as a whole with each change. Of long evidence only the
 * measurements that changed it are added to a log, until the log would be longer than half of the whole.
 */

/** Shorter evidence is always written as a whole. */
const longLength = 4_096;
/** What is added to evidence is at most this part of the longest that the whole can become. */
const addedPart = 1 / 2;

/** The whole, or what is added to it. `log`: the version that later additions refer to. */
export type EvidenceWrite =
  { kind: 'whole'; log: number | undefined } | { kind: 'added'; base: number; text: string | null };

/** The log of evidence that was read. `base` is null if nothing may be added; `added` counts characters. */
export function logOfRead(
  profile: Profile,
  runtime: Runtime,
  read: Pick<EvidenceLog, 'version' | 'base' | 'added' | 'hasRows'>,
): EvidenceLog | null {
  const isLong = isLongAt(profile, runtime);
  return isLong || read.hasRows ? { ...read, pending: [], runtime, isLong } : null;
}

/** The log after an evaluation changed the evidence of `before` to `runtime`. */
export function logAfter(
  before: DeviceState,
  runtime: Runtime,
  evaluated: Measurement[],
): EvidenceLog | null {
  const { current, version } = before;
  if (!current) return null;
  const isLong = isLongAt(current.profile, runtime);
  const log = currentLog(before);
  const hasRows = log ? log.hasRows : mayHaveRows(before);
  if (!isLong && !hasRows) return null;
  const start: EvidenceLog = {
    base: null,
    added: 0,
    version,
    pending: [],
    runtime,
    hasRows,
    isLong,
  };
  if (!log || log.base === null || !isLong) return start;
  const pending = [...log.pending, encodeMeasurements(evaluated)];
  return { ...start, base: log.base, added: log.added, pending };
}

/** Whether rows may have been added to evidence that is now written as a whole. */
export function mayHaveRows({ evidenceLog: log }: DeviceState): boolean {
  return log !== null && (log.hasRows || log.pending.length > 0);
}

/** What the next commit writes of a device's evidence. */
export function evidenceWrite(deviceState: DeviceState): EvidenceWrite {
  const { version } = deviceState;
  const log = currentLog(deviceState);
  if (!log || isWholeNext(log, deviceState)) {
    return { kind: 'whole', log: deviceState.evidenceLog?.isLong ? version : undefined };
  }
  const { base, pending } = log;
  if (base === null) throw new Error('Evidence is added to nothing.');
  return { kind: 'added', base, text: pending.length > 0 ? joined(pending) : null };
}

/** The log as of the state's version, with what was pending before stored. Null: it is of other evidence. */
function currentLog(deviceState: DeviceState): EvidenceLog | null {
  const { evidenceLog: log, version, runtime } = deviceState;
  if (!log || log.runtime !== runtime) return null;
  if (log.version === version) return log;
  const stored = { ...log, version, pending: [] };
  if (isWholeNext(log, deviceState))
    return { ...stored, base: log.isLong ? log.version : null, added: 0, hasRows: false };
  const more = lengthOf(log.pending);
  return { ...stored, added: log.added + more, hasRows: log.hasRows || more > 0 };
}

function isWholeNext(
  { base, added, pending, isLong }: EvidenceLog,
  deviceState: DeviceState,
): boolean {
  if (base === null || !isLong) return true;
  if (pending.length === 0) return false;
  const { current, runtime } = deviceState;
  const most = current && runtime ? evidenceLength(current.profile, runtime) * addedPart : 0;
  return added + lengthOf(pending) > most;
}

const lengthOf = (pending: string[]) => pending.reduce((sum, { length }) => sum + length, 0);

/** With timed members the measurements alone do not reproduce the evidence, so it is stored as a whole. */
const isLongAt = (profile: Profile, runtime: Runtime) =>
  !profile.isTimed && evidenceLength(profile, runtime) >= longLength;

/** Joins JSON arrays into one. */
function joined(arrays: string[]): string {
  const elements = arrays.map((text) => text.slice(1, -1)).filter((text) => text !== '');
  return `[${elements.join(',')}]`;
}
