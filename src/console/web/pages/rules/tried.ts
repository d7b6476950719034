import type { BacktestLine } from '../../api/types.ts';

type LineOf<K extends BacktestLine['kind']> = Extract<BacktestLine, { kind: K }>;

/** The lines of a kind. */
export const linesOf = <K extends BacktestLine['kind']>(lines: readonly BacktestLine[], kind: K) =>
  lines.filter((line): line is LineOf<K> => line.kind === kind);

/**
 * An alarm of a backtest, ms. `fate`: on which side it is; `moved`: on both, `earlierMs` earlier with the rule that was
 * played. Null: it was compared with nothing.
 */
export type TriedAlarm = {
  uuid: string;
  stId: number;
  evId: number;
  /** When it opened, on both sides: then people are told. */
  from: number;
  /** Null: it is not known, as of alarms of the other side, or it was open at the end. */
  until: number | null;
  fate: 'same' | 'candidate' | 'against' | 'moved' | null;
  earlierMs: number;
};

type Compared = {
  /** The rule's number: devices may have other rules. */
  puId: unknown;
  /** Whether this device's alarms were compared. */
  isCompared: (uuid: string) => boolean;
};

/** The alarms of a backtest's lines with those of the other side, by time. */
export function listAlarms(
  lines: readonly BacktestLine[],
  { puId, isCompared }: Compared,
): TriedAlarm[] {
  const differences = linesOf(lines, 'difference').filter(
    ({ of, ...line }) => of === 'alarm' && line.puId === puId && isCompared(line.deviceAuthUuid),
  );
  const nameOf = (line: { deviceAuthUuid: string; stId: number; evId: number }, ts: number) =>
    `${line.deviceAuthUuid}/${line.stId}/${line.evId}/${ts}`;
  const own = new Map(
    differences.flatMap((line) =>
      line.only === 'against' ? [] : [[nameOf(line, line.ts), line] as const],
    ),
  );
  const played = linesOf(lines, 'alarm').map((alarm): TriedAlarm => {
    const { deviceAuthUuid: uuid, stId, evId, sinceTs, overTs, closedTs } = alarm;
    const difference = own.get(nameOf(alarm, sinceTs));
    const fate = difference ? (difference.only ?? 'moved') : 'same';
    return {
      uuid,
      stId,
      evId,
      from: sinceTs,
      until: overTs === null ? closedTs : Math.max(overTs, sinceTs),
      fate: isCompared(uuid) ? fate : null,
      earlierMs: difference?.earlierMs ?? 0,
    };
  });
  const others = differences.flatMap((line): TriedAlarm[] => {
    const { only, deviceAuthUuid: uuid, stId, evId, ts } = line;
    if (only !== 'against') return [];
    return [{ uuid, stId, evId, from: ts, until: null, fate: 'against', earlierMs: 0 }];
  });
  return [...played, ...others].toSorted((one, other) => one.from - other.from);
}
