import type { SettingsInput } from '../src/config/settings.ts';
import { premiumRate } from './premium-rate.ts';

/** How messages to people are delivered, and through which channels. A part of default.ts. */
export const notifications: SettingsInput['notifications'] = {
  /** Concurrent push messages in this process, and the same number of SMS. One account has at most two of any kind. */
  concurrency: 4,
  /** Attempts before a delivery fails for good; 8 take half an hour with the pauses in between. */
  maxAttempts: 8,
  /** How often the service looks for waiting deliveries; it also starts at once when one is written. */
  pollIntervalMs: 2_000,
  /**
   * { url: 'https://watcher.example.com/ping/1', everyMs: 60_000 }: the service requests this URL (GET) as
   * long as every connector listens and due work is done within a minute, so that a monitor elsewhere notices
   * when the service is down. null: no heartbeat.
   */
  heartbeat: null,
  /** How long the results of deliveries are kept. */
  retentionDays: 90,
  /**
   * Apple push: { keyFile: 'AuthKey_X.p8', keyId: '…', teamId: '…', topic: 'com.example.app',
   * production: true }. null: push messages end as "failed", with that reason.
   */
  push: null,
  /**
   * E-mail goes through the server that SMTP_URL names. `from`: the sender; null: sensorium at the host of
   * PUBLIC_URL. `timeoutMs`: for one e-mail, from the connection to the server's answer.
   */
  email: { from: null, timeoutMs: 15_000 },
  /**
   * Whether webhooks may lead to private and link-local addresses and to this machine.
   * null: only if registration is closed.
   */
  webhooks: { allowPrivateAddresses: null },
  /**
   * { driver: 'log' } only writes messages to the log;
   * { driver: 'webhook', url, secretFile } posts them, signed, to your own URL;
   * { driver: 'rest', url, username, passwordFile, from } posts them to an SMS provider.
   */
  sms: {
    driver: 'log',
    /**
     * Prefixes of the phone numbers that SMS may be sent to, such as '+49'. A prefix that starts with '!'
     * is refused. The longest matching prefix decides.
     */
    allowedPrefixes: ['+', ...premiumRate.split(/\s+/).map((prefix) => `!+${prefix}`)],
    /**
     * Whether all accounts may send SMS. false: an account that registered itself needs
     * `npm run account -- allow EMAIL sms`. null: false if registration is open, otherwise true.
     */
    forAll: null,
  },
};
