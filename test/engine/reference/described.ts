import type { explain } from '../../../src/engine/explain.ts';
import type { Cause } from '../../../src/contract/purpose.ts';
import { windowOf } from './collected.ts';
import type { ReferenceEngine } from './engine.ts';
import { baselineOf } from './judge.ts';
import { windowLength, type Log } from './log.ts';
import { newestAgreed, senseOf } from './told.ts';

/** What GET …/evaluation says of the live events, except `seen`, which is not the engine's. */
export function explained(engine: ReferenceEngine): ReturnType<typeof explain>['events'] {
  return engine.live().map((live) => {
    const log = engine.logOf(live);
    const { stId, isGlobal, event } = live;
    return {
      stId,
      evId: event.evId,
      name: event.name ?? '',
      isGlobal,
      rung: engine.isInEpisode(live),
      causes: live.causes.map((cause, index) => {
        const group = live.groups.findIndex((indexes) => indexes.includes(index));
        return { ...explainCause(log, cause, index), ...(event.anyOf && { group }) };
      }),
    };
  });
}

function explainCause(log: Log, cause: Cause, index: number) {
  const window = windowOf(log, cause, index);
  const matched = window.filter(({ outcome }) => outcome.agrees).length;
  const { n: needed, m } = windowLength(cause);
  const { decimalAcc, negate = false, relative = false } = cause.threshold ?? {};
  const agreed = agreedOf(log, cause, index);
  const baseline = relative ? baselineOf(log, index) : undefined;
  return {
    sId: cause.sId,
    orderId: cause.orderId ?? 0,
    thresholds: cause.thresholds,
    negate,
    relative,
    matched,
    of: window.length,
    windowLength: m,
    needed,
    missing: Math.max(0, needed - matched),
    holds: matched >= needed,
    ...(decimalAcc === undefined ? {} : { decimalAcc }),
    ...(baseline === undefined ? {} : { baseline }),
    ...(agreed ? { agreed } : {}),
  };
}

function agreedOf(log: Log, cause: Cause, index: number) {
  const newest = newestAgreed(log, cause, index);
  if (!newest) return undefined;
  const { sId: _sId, ...told } = senseOf(cause.sId, newest);
  const { compared } = newest.outcome;
  return compared === undefined ? told : { ...told, compared };
}

/** What version 0.1 would have stored: `OldEvent` of `src/engine/runtime-codec.ts`. */
export function storedOld(engine: ReferenceEngine): unknown {
  const { puId, stId } = engine.place;
  const scopes: { local: Record<string, unknown>; global: Record<string, unknown> } = {
    local: {},
    global: {},
  };
  for (const live of engine.live()) {
    const log = engine.logOf(live);
    const rung = engine.isInEpisode(live);
    const stored = live.causes.map((cause, index) => {
      const window = windowOf(log, cause, index)
        .map(({ outcome }) => (outcome.agrees ? '1' : '0'))
        .join('');
      const baseline = cause.threshold?.relative ? baselineOf(log, index) : undefined;
      if (window === '' && baseline === undefined) return null;
      return { window, baseline, agreed: agreedOf(log, cause, index) };
    });
    const key = `${live.stId}/${live.event.evId}`;
    scopes[live.isGlobal ? 'global' : 'local'][key] = { causes: stored, rung: rung || undefined };
  }
  return JSON.parse(JSON.stringify({ v: 1, puId, stId, ...scopes })) as unknown;
}
