import { sensesOf } from '../core/senses.ts';
import type { Configuration } from '../core/configuration.ts';
import { checkConfigurationSizes } from '../core/sizes.ts';
import type { DeviceContext } from './context.ts';
import type { Scope } from './scope.ts';

/**
 * The device describes itself anew; its senses count from the next message on. What is larger than it may
 * be is no description: the one before stays.
 */
export function applyConfiguration(
  context: DeviceContext,
  configuration: Configuration,
  { rows, limits, reject }: Scope,
): DeviceContext {
  const sizes = limits.sizesOf?.(context.device.accountId);
  const [wrong] = sizes ? checkConfigurationSizes(configuration, sizes) : [];
  if (wrong) {
    reject({ reason: 'invalid-payload', ...wrong });
    return context;
  }
  rows.configurations.push({ deviceId: context.device.deviceId, configuration });
  return { ...context, senses: sensesOf(configuration) };
}
