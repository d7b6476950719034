import type { EventExplanation } from '../../../src/engine/explain.ts';
import type { Cause } from '../../../src/contract/purpose.ts';
import { senseOf, windowOf } from './cause.ts';
import type { Collected } from './cause.ts';
import type { ReferenceEngine } from './engine.ts';

/** What GET …/evaluation says of the live events; `seen` is not the engine's. */
export function explained(engine: ReferenceEngine): EventExplanation[] {
  return engine.live().map((live) => {
    const { rung, causes } = engine.memoryOf(live);
    const { stId, isGlobal, event } = live;
    return {
      stId,
      evId: event.evId,
      name: event.name ?? '',
      isGlobal,
      rung,
      causes: live.causes.map((cause, i) => explainCause(cause, causes[i] ?? { outcomes: [] })),
    };
  });
}

function explainCause(cause: Cause, collected: Collected) {
  const window = windowOf(cause, collected);
  const matched = window.filter((it) => it !== null).length;
  const needed = cause.threshold?.count ?? 1;
  const { decimalAcc, negate = false, relative = false } = cause.threshold ?? {};
  const agreed = agreedOf(cause, collected);
  return {
    sId: cause.sId,
    orderId: cause.orderId ?? 0,
    thresholds: cause.thresholds,
    negate,
    relative,
    matched,
    of: window.length,
    windowLength: Math.max(needed, cause.measurement?.count ?? 0),
    needed,
    missing: Math.max(0, needed - matched),
    holds: matched >= needed,
    ...(decimalAcc === undefined ? {} : { decimalAcc }),
    ...(collected.baseline === undefined ? {} : { baseline: collected.baseline }),
    ...(agreed ? { agreed } : {}),
  };
}

function agreedOf(cause: Cause, collected: Collected) {
  const newest = windowOf(cause, collected).findLast((it) => it !== null);
  if (!newest) return undefined;
  const { sId: _sId, ...told } = senseOf(cause.sId, newest);
  return newest.compared === undefined ? told : { ...told, compared: newest.compared };
}

/** What version 0.1 would have stored: `OldEvent` of `src/engine/read-runtime-v1.ts`. */
export function storedOld(engine: ReferenceEngine): unknown {
  const { puId, stId } = engine;
  const scopes: { local: Record<string, unknown>; global: Record<string, unknown> } = {
    local: {},
    global: {},
  };
  for (const live of engine.live()) {
    const { causes, rung } = engine.memoryOf(live);
    const stored = live.causes.map((cause, i) => {
      const collected = causes[i] ?? { outcomes: [] };
      const window = windowOf(cause, collected)
        .map((it) => (it === null ? '0' : '1'))
        .join('');
      const { baseline } = collected;
      if (window === '' && baseline === undefined) return null;
      return { window, baseline, agreed: agreedOf(cause, collected) };
    });
    const key = `${live.stId}/${live.event.evId}`;
    scopes[live.isGlobal ? 'global' : 'local'][key] = { causes: stored, rung: rung || undefined };
  }
  return JSON.parse(JSON.stringify({ v: 1, puId, stId, ...scopes })) as unknown;
}
