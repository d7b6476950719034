import { applyAnswer, applyRequest, becomeCurrent } from './apply-profile.ts';
import { applyConfiguration } from './apply-configuration.ts';
import { applyEvents } from './apply-events.ts';
import { applyMeasurements } from './apply-measurements.ts';
import { applyState } from './apply-state.ts';
import type { UplinkContent } from '../core/uplink.ts';
import type { DeviceContext } from './context.ts';
import { collectRejections } from './collect-rejections.ts';
import type { Unit } from './entry.ts';
import type { Rows } from './rows.ts';
import type { ApplyLimits, Scope } from './scope.ts';

/**
 * Takes one message into account: adds what is to be written to `rows` and gives the device's
 * context after it. Pure but for `rows`, which belongs to the transaction being planned.
 */
export function apply(
  context: DeviceContext,
  unit: Unit,
  rows: Rows,
  limits: ApplyLimits,
): DeviceContext {
  const { arrivedTs } = unit.entry.uplink;
  const rejections = collectRejections(context.device, unit, rows, limits.rejectionsPerMessage);
  for (const rejection of unit.rejections) rejections.add(rejection);
  const scope: Scope = { arrivedTs, rows, limits, reject: rejections.add };
  const after = applyContent(context, unit.content, scope);
  rejections.end();
  return after;
}

function applyContent(context: DeviceContext, content: UplinkContent, scope: Scope): DeviceContext {
  if (content.kind === 'profile-answer') return applyAnswer(context, content.answer, scope);
  if (content.kind === 'profile-request') return applyRequest(context, scope);
  // A device that never asked for a profile is a plain sensor: it runs what is pending from here on.
  const running =
    context.pending && !context.answersProfiles
      ? becomeCurrent(context, context.pending, {}, scope)
      : context;
  switch (content.kind) {
    case 'measurements':
      return applyMeasurements(running, content.items, scope);
    case 'state':
      return applyState(running, content.report, scope);
    case 'events':
      return applyEvents(running, content.items, scope);
    case 'configuration':
      return applyConfiguration(running, content.configuration, scope);
    case 'none':
      return running;
  }
}
