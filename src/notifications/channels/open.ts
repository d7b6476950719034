import { readFile } from 'node:fs/promises';
import { logDriver, noPushDriver, restDriver, webhookDriver } from './sms.ts';
import type { NotificationLog } from '../log.ts';
import type { NotificationSettings } from '../settings.ts';
import type { Driver } from './channel.ts';
import type { Clock } from '../../lib/clock-readings.ts';

export type Drivers = { push: Driver; sms: Driver };

type Dependencies = { log: NotificationLog; clock: Clock };

/** Opens the drivers that the configuration names; rejects if a key or secret cannot be read. */
export async function openDrivers(
  { push, sms }: Pick<NotificationSettings, 'push' | 'sms'>,
  dependencies: Dependencies,
): Promise<Drivers> {
  return {
    push: push ? await openPush(push) : noPushDriver(),
    sms: await openSms(sms, dependencies),
  };
}

async function openPush(config: NonNullable<NotificationSettings['push']>): Promise<Driver> {
  // Loading this takes a tenth of the time to start, and few installations use it.
  const { apnsDriver } = await import('./push.ts');
  const ca = config.caFile === undefined ? undefined : await readFile(config.caFile);
  return apnsDriver(config, { key: await readFile(config.keyFile), ca });
}

async function openSms(
  config: NotificationSettings['sms'],
  { log, clock }: Dependencies,
): Promise<Driver> {
  switch (config.driver) {
    case 'webhook':
      return webhookDriver(config, await readSecret(config.secretFile), clock);
    case 'rest':
      return restDriver(config, await readSecret(config.passwordFile), clock);
    case 'log':
      return logDriver(log);
  }
}

/** Editors end a file with a line break that is not part of the secret. */
async function readSecret(file: string): Promise<string> {
  return (await readFile(file, 'utf8')).trim();
}
