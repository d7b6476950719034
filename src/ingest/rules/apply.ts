import type { Rejection } from '../../contract/rejection.ts';
import type { Changes } from './changes.ts';
import { collectRejections, type RejectionCollector } from './rejections.ts';
import { applyConfiguration } from './configuration.ts';
import { type Budget, costs } from './model.ts';
import type { DeviceContext } from './device-context.ts';
import { applyEvents } from './events.ts';
import { applyMeasurements } from './measurements.ts';
import { plannedOutcomeOf } from './outcome.ts';
import type { Unit, UnitContent } from './message.ts';
import { runPending } from './pending.ts';
import { applyAnswer, applyRequest } from './profile.ts';
import type { Applied, ApplyLimits, MessageScope } from './scope.ts';
import { applyState } from './state.ts';
import type { StoredAlready } from './stored-already.ts';
import { runTicks, type Ticked } from './tick.ts';

/**
 * Takes one message into account: adds what is to be written to `rows` and gives the device's
 * context after it, and how many of its items were applied before the budget was spent; none where that went into
 * what time alone has completed before it. Pure but for `rows` and `budget`, which belong to the transaction being
 * planned.
 */
export function apply(
  context: DeviceContext,
  unit: Unit,
  rows: Changes,
  limits: ApplyLimits,
  budget: Budget,
  stored: StoredAlready | null,
): Applied {
  // Most messages have none.
  let rejections: RejectionCollector | undefined;
  const { message } = unit;
  const outcome = message.outcome && plannedOutcomeOf(message, rows, limits);
  const reject = (rejection: Rejection) => {
    outcome?.reject(rejection);
    rejections ??= collectRejections(context, unit, rows, limits);
    budget.spent += rejections.add(rejection) ? costs.rejection : costs.counted;
  };
  const { topic, arrivedTs } = message.uplink;
  const scope: MessageScope = { topic, arrivedTs, rows, limits, budget, reject, stored, outcome };
  // Mostly no profile has members of time.
  const isTimed = context.current?.profile.isTimed || context.pending?.isTimed;
  const ticked: Ticked = isTimed
    ? runTicks(context, scope, { isTick: unit.content.kind === 'tick' })
    : { context, isBehind: false };
  const applied = ticked.isBehind
    ? waiting(ticked.context, unit.content)
    : applyUnit(ticked.context, unit, scope);
  if (!rejections) return applied;
  const recentRejections = rejections.end();
  if (recentRejections === context.recentRejections) return applied;
  return { ...applied, context: { ...applied.context, recentRejections } };
}

/** A tick does what there is room for, and the next one goes on; a message waits until nothing is left to do before it. */
function waiting(context: DeviceContext, content: UnitContent): Applied {
  return content.kind === 'tick' ? whole(context) : { context, items: 0 };
}

function applyUnit(
  context: DeviceContext,
  { content, rejections }: Unit,
  scope: MessageScope,
): Applied {
  for (const rejection of rejections) scope.reject(rejection);
  if (content.kind === 'tick') return whole(context);
  if (content.kind === 'profile-answer') return whole(applyAnswer(context, content.answer, scope));
  if (content.kind === 'profile-request') return whole(applyRequest(context, scope));
  // A device that never asked for a profile is a plain sensor: it runs what is pending from here on. It may have
  // been silent since that was installed.
  const running = context.pending ? runPending(context, scope) : context;
  switch (content.kind) {
    case 'measurements':
      return applyMeasurements(running, content.items, scope);
    case 'state':
      return whole(applyState(running, content.report, scope));
    case 'events':
      return applyEvents(running, content.items, scope);
    case 'configuration':
      return whole(applyConfiguration(running, content.configuration, scope));
    case 'time':
      scope.rows.effects.push({
        kind: 'time',
        uuid: context.device.uuid,
        request: content.request,
      });
      return whole(running);
    case 'none':
      return whole(running);
  }
}

/** Of a message that is a single item. */
function whole(context: DeviceContext): Applied {
  return { context, items: 1 };
}
