import { sensesOf } from '../core/senses.ts';
import type { Configuration } from '../core/configuration.ts';
import type { DeviceContext } from './context.ts';
import type { Scope } from './scope.ts';

/** The device describes itself anew; its senses count from the next message on. */
export function applyConfiguration(
  context: DeviceContext,
  configuration: Configuration,
  { rows }: Scope,
): DeviceContext {
  rows.configurations.push({ deviceId: context.device.deviceId, configuration });
  return { ...context, senses: sensesOf(configuration) };
}
