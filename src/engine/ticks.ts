import type { LiveEvent } from './compile-event.ts';
import type { CompiledCause } from './compile-cause.ts';
import { afterListening, afterPauses, pauseMs } from './listening.ts';
import type { Listening } from './listening.ts';
import type { EventEvidence } from './runtime.ts';
import type { CauseTime } from './time-evidence.ts';

/**
 * What a cause waits for: that its evidence is complete at `t`. It is due at `ts`, or just before the first measurement
 * of its sense that is later than `t`; a silence is due at `ts` only. Ms.
 */
export type Tick = { event: LiveEvent; index: number; t: number; ts: number };

/** What the service knows of listening. A gap that lasts goes on until `nowTs` at least. */
export type KnownListening = { listening: Listening; nowTs: number };

/** The ticks that an event waits for, in the order of its causes. */
export function ticksOf(
  event: LiveEvent,
  evidence: EventEvidence | null,
  known: KnownListening,
): Tick[] {
  const ticks: Tick[] = [];
  for (const [index, cause] of event.causes.entries()) {
    const time = evidence?.time?.causes[index];
    const due = time && dueOf(cause, time, known);
    if (due) ticks.push({ event, index, ...due });
  }
  return ticks;
}

function dueOf(
  { time: members }: CompiledCause,
  { run, silence }: CauseTime,
  { listening, nowTs }: KnownListening,
): { t: number; ts: number } | null {
  if (run?.due && !run.isComplete) {
    return { t: run.due.t, ts: afterPauses(run.due.ts, pauseMs, listening, nowTs) };
  }
  if (!silence || silence.completeTs !== null || !members?.noneForMs) return null;
  const { noneForMs } = members;
  const t = afterListening(silence.sinceTs, noneForMs, listening, nowTs);
  return { t, ts: afterPauses(t, Math.min(pauseMs, noneForMs), listening, nowTs) };
}

/** By when they are due, then by when their evidence is complete. Those alike stay as they are. */
export function inOrder(ticks: Tick[]): Tick[] {
  return ticks.toSorted((one, other) => one.ts - other.ts || one.t - other.t);
}

/** Whether the event waits for that tick still. */
export function isWaiting({ index, t }: Tick, evidence: EventEvidence | null): boolean {
  const { run, silence } = evidence?.time?.causes[index] ?? {};
  if (run) return !run.isComplete && run.due?.t === t;
  return silence?.completeTs === null;
}
