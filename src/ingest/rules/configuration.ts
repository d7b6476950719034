import { sensesOf } from '../../contract/senses.ts';
import type { Configuration } from '../../contract/configuration.ts';
import { checkConfigurationSizes } from '../../contract/sizes.ts';
import type { DeviceContext } from './device-context.ts';
import type { MessageScope } from './scope.ts';
import { makesAlarms, signal } from './signal.ts';

/**
 * The device describes itself anew; its senses count from the next message on. What is larger than it may
 * be is no description: the one before stays.
 */
export function applyConfiguration(
  context: DeviceContext,
  configuration: Configuration,
  scope: MessageScope,
): DeviceContext {
  const { rows, limits, reject } = scope;
  const sizes = limits.sizesOf?.(context.device.accountId);
  const [wrong] = sizes ? checkConfigurationSizes(configuration, sizes) : [];
  if (wrong) {
    reject({ reason: 'invalid-payload', ...wrong });
    return context;
  }
  scope.outcome?.store();
  rows.configurations.push({ deviceId: context.device.deviceId, configuration });
  const senses = sensesOf(configuration);
  const isGone = (sId: string) => !senses.has(sId);
  if (makesAlarms(context) && [...context.senses.keys()].some(isGone))
    signal(context, { kind: 'configuration', sIds: [...senses.keys()] }, scope);
  return { ...context, senses };
}
