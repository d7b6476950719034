import type { Rejection } from '../core/rejection.ts';
import { applyAnswer, applyRequest, becomeCurrent } from './apply-profile.ts';
import { applyConfiguration } from './apply-configuration.ts';
import { applyEvents } from './apply-events.ts';
import { applyMeasurements } from './apply-measurements.ts';
import { applyState } from './apply-state.ts';
import { costs } from './budget.ts';
import type { Budget } from './budget.ts';
import type { UplinkContent } from '../core/uplink.ts';
import type { DeviceContext } from './context.ts';
import { collectRejections } from './collect-rejections.ts';
import type { Unit } from './entry.ts';
import type { Rows } from './rows.ts';
import type { Applied, ApplyLimits, Scope } from './scope.ts';

/**
 * Takes one message into account: adds what is to be written to `rows` and gives the device's
 * context after it, and how many of its items were applied before the budget was spent. Pure but for
 * `rows` and `budget`, which belong to the transaction being planned.
 */
export function apply(
  context: DeviceContext,
  unit: Unit,
  rows: Rows,
  limits: ApplyLimits,
  budget: Budget,
): Applied {
  const { arrivedTs } = unit.entry.uplink;
  const rejections = collectRejections(context, unit, rows, limits.rejectionsPerMessage);
  const reject = (rejection: Rejection) => {
    budget.spend(rejections.add(rejection) ? costs.rejection : costs.counted);
  };
  for (const rejection of unit.rejections) reject(rejection);
  const scope: Scope = { arrivedTs, rows, limits, budget, reject };
  const applied = applyContent(context, unit.content, scope);
  const lately = rejections.end();
  if (lately === context.lately) return applied;
  return { ...applied, context: { ...applied.context, lately } };
}

function applyContent(context: DeviceContext, content: UplinkContent, scope: Scope): Applied {
  if (content.kind === 'profile-answer') return whole(applyAnswer(context, content.answer, scope));
  if (content.kind === 'profile-request') return whole(applyRequest(context, scope));
  // A device that never asked for a profile is a plain sensor: it runs what is pending from here on.
  const running =
    context.pending && !context.answersProfiles
      ? becomeCurrent(context, context.pending, {}, scope)
      : context;
  switch (content.kind) {
    case 'measurements':
      return applyMeasurements(running, content.items, scope);
    case 'state':
      return whole(applyState(running, content.report, scope));
    case 'events':
      return applyEvents(running, content.items, scope);
    case 'configuration':
      return whole(applyConfiguration(running, content.configuration, scope));
    case 'none':
      return whole(running);
  }
}

/** Of a message that is a single item. */
function whole(context: DeviceContext): Applied {
  return { context, items: 1 };
}
