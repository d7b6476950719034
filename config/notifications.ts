import type { SettingsInput } from '../src/config/settings.ts';
import { premiumRate } from './premium-rate.ts';

/** How messages to people are delivered. This is a part of default.ts. */
export const notifications: SettingsInput['notifications'] = {
  /** Push messages under way at once in this process, and as many SMS. Of one account at most two, of all kinds. */
  concurrency: 4,
  /** Attempts before the service gives up a delivery; with the pauses in between, 8 take half an hour. */
  maxAttempts: 8,
  /** How often the service looks for waiting deliveries. It also looks as soon as one is written. */
  pollIntervalMs: 2_000,
  /**
   * { url: 'https://watcher.example.com/ping/1', everyMs: 60_000 }: the service requests this address (GET) for as long
   * as every connector listens and due work is done within a minute, so that a monitor elsewhere notices when the
   * service is gone. null: it requests nothing.
   */
  heartbeat: null,
  /** How long the results of deliveries are kept. */
  retentionDays: 90,
  /**
   * Apple push: { keyFile: 'AuthKey_X.p8', keyId: '…', teamId: '…', topic: 'com.example.app',
   * production: true }. null: pushes end as "failed", with that as the reason.
   */
  push: null,
  /**
   * SMTP_URL names the mail server. `from`: the sender; null: sensorium at the host of PUBLIC_URL.
   * `timeoutMs`: for one mail, from the connection to the server's answer.
   */
  email: { from: null, timeoutMs: 15_000 },
  /**
   * Whether webhooks may lead to private and link-local addresses, and to this machine.
   * null: not if everybody can register; anywhere if registration is closed.
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
     * Prefixes of the telephone numbers to which SMS may be sent: '+49'. A '!' in front forbids a prefix; the longest
     * prefix decides.
     */
    allowedPrefixes: ['+', ...premiumRate.split(/\s+/).map((prefix) => `!+${prefix}`)],
    /**
     * false: an account that registered itself needs `npm run account -- allow EMAIL sms`.
     * null: the same if registration is open, and true if it is not.
     */
    forAll: null,
  },
};
