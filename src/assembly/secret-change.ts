import { Gauge } from 'prom-client';
import { deriveSecretCheck } from '../config/keys.ts';
import { startEvery } from '../lib/wait.ts';
import { countTokensOf, listChecks } from '../secret-check/secret-check.ts';
import type { Shared } from './shared.ts';

/** Counting reads all devices. */
const countEveryMs = 60_000;
const tellEveryMs = 3_600_000;

/**
 * While the secret is being changed, counts the devices whose token is valid only because of SECRET_PREVIOUS. The count
 * is a metric and is logged, so that the operator knows when the change can be finished. Does nothing without
 * SECRET_PREVIOUS.
 */
export function startSecretChangeOf(shared: Shared): void {
  const { config, db, monotonicClock, metrics, disposables } = shared;
  const gauge = new Gauge({
    name: 'devices_of_previous_secret',
    help:
      'Devices whose token is valid only because of SECRET_PREVIOUS; 0 if the secret is not ' +
      'being changed.',
    registers: [metrics.registry],
  });
  const { secret, previousSecret } = config;
  if (previousSecret === null) return;
  const own = secret === null ? null : deriveSecretCheck(secret);
  const log = shared.log.child({ component: 'secret' });
  let told: { left: number; atMs: number } | null = null;

  function tell(left: number): void {
    const monotonicMs = monotonicClock();
    if (told !== null && (left === told.left || left > 0) && monotonicMs - told.atMs < tellEveryMs)
      return;
    told = { left, atMs: monotonicMs };
    if (left === 0)
      log.info(
        { event: 'secret.devices-moved' },
        'Every device has a token of the new secret: SECRET_PREVIOUS can be removed.',
      );
    else
      log.info(
        { event: 'secret.devices-left', devices: left },
        'Some devices still have a token of the previous secret: SECRET_PREVIOUS is still needed.',
      );
  }

  async function count(): Promise<void> {
    try {
      const [newest, ...older] = await listChecks(db);
      // There is nothing to count before the new secret is the newest one.
      if (own !== null && newest !== own) return;
      const left = await countTokensOf(db, older);
      gauge.set(left);
      if (older.length > 0) tell(left);
    } catch (err) {
      log.warn(
        { event: 'secret.uncounted', err },
        'The devices with a token of the previous secret could not be counted; the service will try again in a minute.',
      );
    }
  }

  disposables.add('change of the secret', startEvery(countEveryMs, count));
}
