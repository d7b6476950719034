import type { Profile } from '../../engine/compile.ts';
import { watchedOf } from '../../engine/watched.ts';
import type { DeviceContext } from './device-context.ts';

/** What the service evaluates for a device: where that evaluates itself, silences only. Null: nothing. */
export function evaluatedProfile({ current }: DeviceContext): Profile | null {
  if (!current) return null;
  return current.engine === 'service' ? current.profile : watchedOf(current.profile);
}
