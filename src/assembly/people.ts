import {
  AlarmDecider,
  type DecideDeps,
  senseKey,
  startAlarmTimer,
  type TimerOptions,
  wakeAlarms,
} from '../alarms/decide.ts';
import { type AlarmRouteDeps, alarmRoutes } from '../alarms/routes.ts';
import { walkChangedAlarms } from '../alarms/rows.ts';
import { forgetAlarms } from '../alarms/store.ts';
import { forgetMeanings } from '../events/meanings.ts';
import type { Config } from '../config/config.ts';
import { contactRoutes } from '../contacts/routes.ts';
import type { OnConfigured } from '../devices/device.ts';
import { findEventId } from '../events/store.ts';
import type { Chore } from '../history/upkeep.ts';
import type { Route } from '../http/route.ts';
import { listClockTimes } from '../ingest/save-states.ts';
import { findExtremes, findNewest, findWithin } from '../measurements/store.ts';
import { observeOutbox } from '../metrics/observe.ts';
import type { ContactOptions } from '../notifications/channels/channel.ts';
import { type Notifications, startNotifications } from '../notifications/notifications.ts';
import { createNumberRule } from '../notifications/recipients.ts';
import { createInstallWarnings, type InstallWarnings } from '../notifications/warnings.ts';
import { createFiringsRate } from '../quotas/rates.ts';
import { tellOf } from '../profiles/change.ts';
import { withLabelLimits } from '../profiles/label-limits.ts';
import type { Shared } from './shared.ts';
import type { WallMs } from '../lib/clock-readings.ts';

/** Starts what notifies people: e-mail, webhooks, push and SMS. */
export async function startNotificationsOf(shared: Shared): Promise<Notifications> {
  const { config, db, log, clock, limitsOf, metrics, disposables, storage } = shared;
  const notifications = await startNotifications({
    db,
    connectionString: storage.connectionString,
    config: config.notifications,
    quotasOf: limitsOf,
    isSmsForAll: isSmsForAll(config),
    contacts: contactOptions(shared),
    onAlarms: (accountId) =>
      shared.bus.publish('events', { accountIds: [accountId], deviceIds: [] }),
    log: log.child({ component: 'notifications' }),
    clock,
    believedTs: shared.believed.believedTs,
    onOutcome: observeOutbox(metrics.registry),
  });
  disposables.add('notifications', () => notifications.close());
  return notifications;
}

/** If only the operator registers accounts, every account may send SMS, unless the configuration says otherwise. */
function isSmsForAll({ accounts, notifications }: Config): boolean {
  return notifications.sms.forAll ?? !accounts.openRegistration;
}

/** The warnings about notifications when purposes are stored and installed. */
export const createInstallWarningsOf = ({
  db,
  config,
  clock,
}: Pick<Shared, 'db' | 'config' | 'clock'>): InstallWarnings =>
  createInstallWarnings({
    db,
    clock,
    isAllowedNumber: createNumberRule(config.notifications.sms.allowedPrefixes),
    isSmsForAll: isSmsForAll(config),
  });

/** If registration is closed, accounts belong to people who could reach the local network anyway. */
function isPrivateAllowed({ accounts, notifications }: Config): boolean {
  return notifications.webhooks.allowPrivateAddresses ?? !accounts.openRegistration;
}

/** How this service sends mail; null: no mail server is configured. */
export function mailOptions({
  config,
  publicUrl,
}: Pick<Shared, 'config' | 'publicUrl'>): ContactOptions['email'] {
  const { email } = config.notifications;
  const { hostname } = new URL(publicUrl.get());
  const host = /^[\d.]+$|^\[/.test(hostname) ? 'localhost' : hostname;
  const from = email.from ?? `Sensorium <sensorium@${host}>`;
  if (config.smtpUrl === null) return null;
  return { smtpUrl: config.smtpUrl, from, timeoutMs: email.timeoutMs };
}

/** How messages reach contacts. */
function contactOptions(shared: Shared): ContactOptions {
  const { config, db, keys, publicUrl } = shared;
  return {
    linkKeys: keys.mailLinks,
    webhookKeys: keys.webhookSecrets,
    publicUrl: publicUrl.get,
    apiUrl: config.publicUrl,
    hasConsole: config.console.enabled,
    findEventId: (deviceUuid, cause) => findEventId(db, deviceUuid, cause),
    email: mailOptions(shared),
    isPrivateAllowed: isPrivateAllowed(config),
  };
}

/**
 * Call it after labels of an account's devices have changed: alarms may have a recipient now, and streams other
 * devices.
 */
export const createOnLabelled =
  ({ db, bus }: Pick<Shared, 'db' | 'bus'>) =>
  async (accountId: number, nowTs: WallMs): Promise<void> => {
    await wakeAlarms(db, accountId, nowTs);
    bus.publish('labels', { accountId });
  };

/** The routes of contacts, and the pages that links in mails lead to. */
export function listContactRoutes(shared: Shared): Route[] {
  const { bus, config, db, keys, limitsOf } = shared;
  return contactRoutes({
    db,
    withLabelLimits: async (tx, of, change) => {
      const { taken } = await withLabelLimits(tx, of, change);
      return () => tellOf(bus, taken);
    },
    onLabelled: createOnLabelled(shared),
    limitsOf,
    linkKeys: keys.mailLinks,
    webhookKeys: keys.webhookSecrets,
    isOpen: config.accounts.openRegistration,
    isPrivateAllowed: isPrivateAllowed(config),
  });
}

export function rulesOf({ config }: Shared): DecideDeps['rules'] {
  const { ringMaxAgeMs } = config.ingest;
  return { ringMaxAgeMs, reportedForMs: config.alarms.reportedForMs };
}

const timerEveryMs = 1_000;

const findNewestTs: TimerOptions['findNewestTs'] = async (tx, senses) => {
  const times = await listClockTimes(tx, await findNewest(tx, senses));
  return new Map(times.map(({ ts, ...sense }) => [senseKey(sense), ts]));
};

/** Decides on alarms for devices of this process, and starts the timer that closes alarms whose time is over. */
export function startAlarms(
  shared: Shared,
  { outbox, eventsLeft }: { outbox: Notifications; eventsLeft: DecideDeps['eventsLeft'] },
) {
  const { db, bus, clock, log, disposables } = shared;
  const rules = rulesOf(shared);
  const notifying = outbox.rules;
  const alarmsLog = log.child({ component: 'alarms' });
  const timer = startAlarmTimer({
    db,
    clock,
    rules,
    notifying,
    pollIntervalMs: timerEveryMs,
    findNewestTs,
    findNewest,
    findExtremes,
    findWithin,
    onChanged: (changed) => bus.publish('events', changed),
    onError: (err) =>
      alarmsLog.warn(
        { event: 'alarms.untimed', err },
        'Due alarms could not be announced; the service will try again.',
      ),
  });
  disposables.add('timer of alarms', () => timer.close());
  return new AlarmDecider({
    rules,
    notifying,
    clock,
    eventsLeft,
    mayTellFirings: createFiringsRate(shared.limitsOf, shared.monotonicClock),
  });
}

/** What routes change about alarms, and about devices with alarms. */
export function createAlarmsOfRoutes(shared: Shared) {
  const { db, bus, config, clock, limitsOf: quotasOf } = shared;
  const decider = new AlarmDecider({
    rules: rulesOf(shared),
    notifying: {
      quotasOf,
      isAllowedNumber: createNumberRule(config.notifications.sms.allowedPrefixes),
      isSmsForAll: isSmsForAll(config),
      ownChannels: [],
    },
    clock,
    // No route opens an alarm.
    eventsLeft: () => 0,
    mayTellFirings: () => true,
  });
  const onConfigured: OnConfigured = async (tx, device, sIds, arrivedTs) => {
    await decider.decide(tx, [{ kind: 'configuration', device, sIds, arrivedTs }]);
  };
  const listRoutes = (
    others: Pick<AlarmRouteDeps, 'getDeviceId' | 'startJob' | 'findJobAlarms'>,
  ): Route[] => alarmRoutes({ db, bus, quotasOf, findNewest, findExtremes, ...others });
  const acting = { db, bus, quotasOf, findNewest };
  return { listRoutes, onConfigured, wake: wakeAlarms, walkAlarms: walkChangedAlarms, acting };
}

const dayMs = 86_400_000;

/** A chore of the upkeep: closed alarms are kept as long as events, and what events are called a little longer. */
export function forgetOldAlarms({ db }: Shared): Chore {
  return async (nowTs, { kept, signal }) => {
    if (kept.eventsDays === Infinity) return;
    const beforeTs = nowTs - kept.eventsDays * dayMs;
    await forgetAlarms(db, beforeTs, signal);
    await forgetMeanings(db, beforeTs, signal);
  };
}
