import type { SettingsInput } from '../src/config/settings.ts';
import { premiumRate } from './premium-rate.ts';

/** Messages to people: how they are delivered, and by what. A part of default.ts. */
export const notifications: SettingsInput['notifications'] = {
  /** Push messages under way at once in this process, and as many SMS. Of one account two, of all kinds. */
  concurrency: 4,
  /** Attempts before a delivery is given up; with the pauses between, 8 take half an hour. */
  maxAttempts: 8,
  /** How often waiting deliveries are looked for, besides at once when one is written. */
  pollIntervalMs: 2_000,
  /**
   * { url: 'https://watcher.example.com/ping/1', everyMs: 60_000 }: requested (GET) as long as every
   * connector listens and what is due is done within a minute, so that a watcher elsewhere sees when this
   * service is gone. null: nothing is.
   */
  heartbeat: null,
  /** How long outcomes are kept. */
  retentionDays: 90,
  /**
   * Apple push: { keyFile: 'AuthKey_X.p8', keyId: '…', teamId: '…', topic: 'com.example.app',
   * production: true }. null: pushes end as "failed", with that reason.
   */
  push: null,
  /**
   * Mail goes by the server that SMTP_URL names. `from`: its sender; null: sensorium at the host of
   * PUBLIC_URL. `timeoutMs`: for one mail, from the connection to the server's answer.
   */
  email: { from: null, timeoutMs: 15_000 },
  /**
   * Whether webhooks may lead to private and link-local addresses, and to this machine.
   * null: not where everybody can register, and anywhere where not.
   */
  webhooks: { allowPrivateAddresses: null },
  /**
   * { driver: 'log' } writes messages to the log only;
   * { driver: 'webhook', url, secretFile } posts them, signed, to a URL of yours;
   * { driver: 'rest', url, username, passwordFile, from } posts them to an SMS provider.
   */
  sms: {
    driver: 'log',
    /**
     * What a telephone number begins with that SMS are sent to: '+49'. With '!' in front it is
     * refused; the longest one decides.
     */
    allowedPrefixes: ['+', ...premiumRate.split(/\s+/).map((prefix) => `!+${prefix}`)],
    /**
     * false: an account that registered itself needs `npm run account -- allow EMAIL sms`.
     * null: the same where registration is open, and true where it is not.
     */
    forAll: null,
  },
};
