import type { DeviceContext } from './device-context.ts';
import type { Scope } from './scope.ts';

/** Evaluates what time alone has completed, up to the tick's arrival. */
export function applyTick(context: DeviceContext, _scope: Scope): DeviceContext {
  return context;
}
