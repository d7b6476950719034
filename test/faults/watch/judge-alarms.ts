import type { Evidence, Told, Watched } from './evidence.ts';
import { expectedOf } from './expected.ts';
import { match } from './match.ts';

/** All but the first must be 0; `toldAgain` only if nothing was killed between a delivery and its outcome. */
export type AlarmVerdict = {
  /** How many there were. */
  alarms: number;
  /** Firings, including those by ticks, that are due by what was acknowledged, and missing. */
  firingsLost: number;
  /** Firings that nothing explains that was sent: caused by an absence of the service, or the same one twice. */
  firingsInvented: number;
  /** Firings that opened no alarm, and alarms of which nobody was notified that they opened or ended. */
  alarmsUntold: number;
  /** Alarms that no firing opened. */
  alarmsInvented: number;
  /** Messages of an alarm that repeat another one under a number of their own. */
  toldTwice: number;
  /** Repeated deliveries of a message, with the same `webhook-id`. */
  toldAgain: number;
};

/** The verdict without faults. */
export const noWrongs: AlarmVerdict = {
  alarms: 0,
  firingsLost: 0,
  firingsInvented: 0,
  alarmsUntold: 0,
  alarmsInvented: 0,
  toldTwice: 0,
  toldAgain: 0,
};

export function judgeAlarms(evidence: Evidence): AlarmVerdict {
  const { devices, told } = evidence;
  const verdict: AlarmVerdict = { ...noWrongs, ...judgeTold(told) };
  const kinds = new Set(told.map(({ type, alarmId }) => `${type} ${alarmId}`));
  const isTold = (type: string, alarmId: number) => kinds.has(`${type} ${alarmId}`);
  for (const device of devices) {
    const { lost, invented } = match(device.firings, expectedOf(device, evidence));
    verdict.alarms += device.alarms.length;
    verdict.firingsLost += lost.length;
    verdict.firingsInvented += invented.length;
    verdict.alarmsInvented += inventedOf(device);
    verdict.alarmsUntold += untoldOf(device, isTold);
  }
  return verdict;
}

/** For people: which firings are lost or invented, with the messages around each, in ms since the first one. */
export function describeWrong(evidence: Evidence): string[] {
  const { devices, gaps } = evidence;
  return devices.flatMap((device) => {
    const { role, uuid, messages, installedTs } = device;
    const { lost, invented } = match(device.firings, expectedOf(device, evidence));
    const since = (ts: number | null) => (ts === null ? 'unanswered' : ts - installedTs);
    const around = (ts: number) => {
      const at = messages.findLastIndex((message) => message.ts <= ts);
      const near = messages.slice(Math.max(0, at - 1), at + 2);
      const told = near.map((message) => `${since(message.ts)}–${since(message.ackedTs)}`);
      const fired = device.firings.filter((one) => Math.abs(one - ts) < 20_000).map(since);
      return `${role} ${uuid} at ${since(ts)}, messages ${told.join(', ')}, fired ${fired.join(', ')}`;
    };
    return [
      ...lost.map(({ fromTs }) => `lost: ${around(fromTs)}`),
      ...invented.map((ts) => `invented: ${around(ts)}`),
      ...gaps
        .map((gap) => `gap of ${gap.connectorId}: ${since(gap.fromTs)}–${since(gap.toTs)}`)
        .slice(0, lost.length + invented.length),
    ];
  });
}

function inventedOf({ alarms, firings }: Watched): number {
  const left = [...firings];
  return alarms.filter(({ sinceTs }) => {
    const place = left.indexOf(sinceTs);
    if (place >= 0) left.splice(place, 1);
    return place < 0;
  }).length;
}

function untoldOf(
  { alarms, firings }: Watched,
  isTold: (type: string, alarmId: number) => boolean,
): number {
  const opened = new Set(alarms.map(({ sinceTs }) => sinceTs));
  const without = firings.filter((ts) => !opened.has(ts)).length;
  const untold = alarms.filter(
    ({ alarmId, closedBy }) =>
      !isTold('alarm.opened', alarmId) ||
      (closedBy === 'cleared' && !isTold('alarm.closed', alarmId)),
  );
  return without + untold.length;
}

function judgeTold(told: Told[]): Pick<AlarmVerdict, 'toldTwice' | 'toldAgain'> {
  const messages = new Map(told.map((one) => [one.webhookId, one]));
  const contents = new Set([...messages.values()].map(({ type, alarmId }) => `${type} ${alarmId}`));
  return { toldTwice: messages.size - contents.size, toldAgain: told.length - messages.size };
}
