import { sensesOf } from '../../contract/senses.ts';
import type { Configuration } from '../../contract/configuration.ts';
import { checkConfigurationSizes } from '../../contract/sizes.ts';
import type { DeviceContext } from './device-context.ts';
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
