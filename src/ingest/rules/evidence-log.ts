import type { Profile } from '../../engine/compile.ts';
import type { Runtime } from '../../engine/runtime.ts';
import { encodeMeasurements } from '../../engine/measurement-log.ts';
import type { Measurement } from '../../contract/measurement.ts';
import type { DeviceContext, EvidenceLog } from './device-context.ts';
import { evidenceLength } from './model.ts';

/** Shorter evidence is written as a whole whenever it changes. */
const longLength = 4_096;
/** What is added is at most this part of the longest that the whole can become. */
const addedPart = 1 / 2;

/** What a commit writes of a device's evidence. `log`: to be named by what is added later. */
export type EvidenceWrite =
  { kind: 'whole'; log: number | undefined } | { kind: 'added'; base: number; text: string | null };

/** Of what is read: `base` is null where nothing may be added to it, `added` characters were. */
export function logOfRead(
  profile: Profile,
  runtime: Runtime,
  read: Pick<EvidenceLog, 'version' | 'base' | 'added' | 'hasRows'>,
): EvidenceLog | null {
  const isLong = isLongAt(profile, runtime);
  return isLong || read.hasRows ? { ...read, pending: [], runtime, isLong } : null;
}

/** After an evaluation that has changed the evidence of `before` to `runtime`. */
export function logAfter(
  before: DeviceContext,
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

/** Whether something may have been added to evidence that is now written as a whole. */
export function mayHaveRows({ evidenceLog: log }: DeviceContext): boolean {
  return log !== null && (log.hasRows || log.pending.length > 0);
}

export function evidenceWrite(context: DeviceContext): EvidenceWrite {
  const { version } = context;
  const log = currentLog(context);
  if (!log || isWholeNext(log, context)) {
    return { kind: 'whole', log: context.evidenceLog?.isLong ? version : undefined };
  }
  const { base, pending } = log;
  if (base === null) throw new Error('Evidence is added to nothing.');
  return { kind: 'added', base, text: pending.length > 0 ? joined(pending) : null };
}

/** The log as of the context's version: what was pending before that is stored. Null: not of this evidence. */
function currentLog(context: DeviceContext): EvidenceLog | null {
  const { evidenceLog: log, version, runtime } = context;
  if (!log || log.runtime !== runtime) return null;
  if (log.version === version) return log;
  const stored = { ...log, version, pending: [] };
  if (isWholeNext(log, context))
    return { ...stored, base: log.isLong ? log.version : null, added: 0, hasRows: false };
  const more = lengthOf(log.pending);
  return { ...stored, added: log.added + more, hasRows: log.hasRows || more > 0 };
}

function isWholeNext(
  { base, added, pending, isLong }: EvidenceLog,
  context: DeviceContext,
): boolean {
  if (base === null || !isLong) return true;
  if (pending.length === 0) return false;
  const { current, runtime } = context;
  const most = current && runtime ? evidenceLength(current.profile, runtime) * addedPart : 0;
  return added + lengthOf(pending) > most;
}

const lengthOf = (pending: string[]) => pending.reduce((sum, { length }) => sum + length, 0);

/** Where members of time count, measurements alone do not tell what was collected: it is stored as a whole. */
const isLongAt = (profile: Profile, runtime: Runtime) =>
  !profile.isTimed && evidenceLength(profile, runtime) >= longLength;

/** JSON arrays as one. */
function joined(arrays: string[]): string {
  const elements = arrays.map((text) => text.slice(1, -1)).filter((text) => text !== '');
  return `[${elements.join(',')}]`;
}
