import type { DoneBy } from '../audit/audit.ts';
import { randomUUID } from 'node:crypto';
import { Gauge } from 'prom-client';
import type { AccountsOptions } from '../accounts/account.ts';
import { startMailer } from '../accounts/mailer.ts';
import { forgetTokensOfEnded } from '../accounts/push-tokens.ts';
import { type ActDeps, muteWithin } from '../alarms/act.ts';
import { actOnPiece } from '../alarms/actions.ts';
import { forgetEntries, insertEntry } from '../audit/audit.ts';
import { type RefusalLog, startRefusalLog } from '../audit/refusals.ts';
import { expireCommands, forgetCommands } from '../commands/store.ts';
import { deriveSecretCheck } from '../config/keys.ts';
import type { Sql } from '../db/sql.ts';
import { listReachable, relabelDevices } from '../devices/actions.ts';
import { forgetRefusedLogins } from '../devices/refused-logins.ts';
import { createDeviceRemoval, detachDevices, type DeviceRemoval } from '../devices/remove.ts';
import type { StoredAction } from '../devices/actions-schema.ts';
import { createClearing } from '../history/clear-removed.ts';
import { type Chore, type FailedJob, startUpkeep } from '../history/upkeep.ts';
import { forgetInputs } from '../ingest/keep-inputs.ts';
import { forgetKeys } from '../idempotency/run-once.ts';
import {
  createStartJob,
  findJobAction,
  findJobAlarms,
  type DoPiece,
  forgetJobs,
  type JobOwner,
  type JobPiece,
  keptSince,
  listJobDevices,
  type PieceDone,
  startJobRunner,
} from '../jobs/jobs.ts';
import { startEvery } from '../lib/wait.ts';
import { forgetGaps } from '../connector-uptime/connector-uptime.ts';
import { observeNearQuotas } from '../metrics/observe.ts';
import { asDeliveryError } from '../notifications/channels/channel.ts';
import { emailDriver, type EmailOptions } from '../notifications/channels/email.ts';
import { enqueueQuotaNotice } from '../notifications/enqueue-direct.ts';
import { createUndeliveredLog } from '../notifications/log.ts';
import { changeProfiles, planBack, type ProfileChange, tellOf } from '../profiles/change.ts';
import { forgetOldDisplays } from '../profiles/downlinks.ts';
import { forgetSpans } from '../profiles/history.ts';
import { withLabelLimits } from '../profiles/label-limits.ts';
import { type AskedChange, planChange } from '../profiles/plan.ts';
import { previewChange } from '../profiles/preview.ts';
import { removeUnusedProfiles } from '../profiles/queries.ts';
import { compactActivity } from '../quotas/activity.ts';
import { moreThan, type NearCounts, startQuotaWatch } from '../quotas/near.ts';
import { countTokensOf, listChecks } from '../secret-check/secret-check.ts';
import type { EndedSession } from '../sessions/sessions.ts';
import { forgetTickets } from '../streams/tickets.ts';
import { type ListListening, startBacktestRunner } from '../play/run.ts';
import { forgetBacktests } from '../play/store.ts';
import { forgetOldAlarms, mailOptions, rulesOf } from './people.ts';
import type { WrittenBy } from '../versions/versions.ts';
import type { Shared } from './shared.ts';
import type { Clock, WallMs } from '../lib/clock-readings.ts';
import { forgetVersions } from '../versions/versions.ts';

type JobDeps = {
  removal: Pick<DeviceRemoval, 'removeWithin' | 'finishRemoval'>;
  acting: ActDeps;
  /** Call it after labels of the account's devices have changed. */
  onLabelled: (accountId: number, nowTs: WallMs) => Promise<void>;
  newUuid: () => string;
  /** Warnings about SMS that purposes send. */
  warnOfSms: Parameters<typeof previewChange>[0]['warnOfSms'];
};

/** Runs jobs: what accounts do with many devices at once. */
export function startJobs(shared: Shared, deps: JobDeps) {
  const { config, db, log, limitsOf, monotonicClock, clock, disposables } = shared;
  const { newUuid } = deps;
  const { believedTs } = shared.believed;
  const jobsLog = log.child({ component: 'jobs' });
  const runner = startJobRunner({
    db,
    doPiece: createDoPiece(shared, deps, clock),
    monotonicClock,
    onError: (err) =>
      jobsLog.warn(
        { event: 'jobs.piece-failed', err },
        'A job failed for some devices; it will be retried.',
      ),
  });
  disposables.add('jobs', () => runner.close());
  return {
    startJob: createStartJob({ db, limitsOf, believedTs, onStarted: runner.wake }),
    listJobDevices,
    findJobAlarms,
    planChange: (
      tx: Sql,
      of: { accountId: number; labels: readonly string[] | null },
      asked: AskedChange,
      by: WrittenBy,
    ) =>
      planChange(
        tx,
        { quotas: config.quotas, limitsOf },
        { ...of, asked, changeId: newUuid(), by },
      ),
    planBack: async (tx: Sql, owner: JobOwner, jobId: string, by: DoneBy) => {
      const action = (await findJobAction(tx, owner, jobId)) as StoredAction | null;
      const uuids = await listJobDevices(tx, owner, jobId);
      const change = action?.change as ProfileChange | undefined;
      if (!change || !uuids) return null;
      const { accountId } = owner;
      return planBack(tx, { accountId, uuids, change, changeId: newUuid(), by });
    },
    planByLabel: () => ({ changeId: newUuid(), byLabel: 'also-own' }),
    previewChange: (of: Parameters<typeof previewChange>[1], asked: AskedChange) =>
      previewChange({ db, limitsOf, warnOfSms: deps.warnOfSms }, of, asked),
  };
}

/** Plays backtests that are kept. Returns what their routes need. */
export function startBacktests(shared: Shared, listListening: ListListening) {
  const { db, clock, log, disposables } = shared;
  const playLog = log.child({ component: 'backtests' });
  const database = shared.storage.connection;
  const rules = rulesOf(shared);
  const runner = startBacktestRunner({
    db,
    database,
    rules,
    listListening,
    clock,
    newUuid: randomUUID,
    onError: (err) =>
      playLog.warn(
        { event: 'backtests.failed', err },
        'A backtest failed for a device; it will be tried again.',
      ),
  });
  disposables.add('backtests', () => runner.close());
  return { database, rules, listListening, onStored: runner.wake };
}

/** A chore of the upkeep. */
const forgetOldBacktests =
  ({ db }: Pick<Shared, 'db'>): Chore =>
  (nowTs, { signal }) =>
    forgetBacktests(db, keptSince(nowTs).sinceTs, signal);

/** A chore of the upkeep. */
const forgetOldJobs =
  ({ db }: Pick<Shared, 'db'>) =>
  (nowTs: WallMs): Promise<void> =>
    forgetJobs(db, { accountId: null, keep: 0, ...keptSince(nowTs) });

function createDoPiece(
  { bus, config }: Pick<Shared, 'bus' | 'config'>,
  { removal, acting, onLabelled }: JobDeps,
  clock: Clock,
): DoPiece {
  return async (tx, piece) => {
    const { accountId, uuids, labels } = piece;
    if (piece.alarmIds.length > 0) return actOnPiece(tx, acting, piece, clock());
    const { action, ...of } = piece.action as StoredAction;
    const by = { actor: piece.actor, ts: clock() };
    switch (action) {
      case 'label':
      case 'unlabel': {
        const { result, taken } = await withLabelLimits(tx, piece, () =>
          relabel(tx, piece, action, of.labels ?? []),
        );
        const after = () => {
          tellOf(bus, taken);
          return onLabelled(accountId, clock());
        };
        return { ...result, after };
      }
      case 'remove': {
        const removed = await removal.removeWithin(tx, accountId, { uuids, labels, by });
        const after = async () => {
          await removal.finishRemoval(removed);
          acting.bus.publish('fleet', { accountId });
        };
        return { failed: missing(uuids, removed), after };
      }
      case 'mute':
      case 'unmute': {
        const devices = await listReachable(tx, accountId, { uuids, labels });
        const until =
          action === 'mute' ? { untilTs: of.untilTs ?? 0, reason: of.reason ?? null } : null;
        await muteWithin(tx, { accountId, by, devices }, until);
        const deviceIds = devices.map(({ deviceId }) => deviceId);
        const after = () => acting.bus.publish('events', { accountIds: [accountId], deviceIds });
        return { failed: missing(uuids, devices), after };
      }
      case 'limits':
      case 'profile':
      case 'label-limits':
      case 'restore': {
        if (!of.change) throw new Error('A job lacks the profile to install.');
        const change = of.change as ProfileChange;
        const deps = { bus, quotas: config.quotas, by: { ...by, reason: of.reason } };
        return changeProfiles(tx, deps, piece, change);
      }
    }
  };
}

async function relabel(
  tx: Sql,
  { accountId, uuids }: JobPiece,
  action: 'label' | 'unlabel',
  labels: string[],
): Promise<PieceDone> {
  const [add, remove] = action === 'label' ? [labels, []] : [[], labels];
  const { missing: gone, full } = await relabelDevices(tx, { accountId, uuids, add, remove });
  return { failed: [...fail(gone, 'no-such-device'), ...fail(full, 'too-many-labels')] };
}

const fail = (uuids: readonly string[], reason: string) =>
  uuids.map((deviceAuthUuid) => ({ deviceAuthUuid, reason }));

function missing(uuids: readonly string[], found: readonly { uuid: string }[]) {
  const there = new Set(found.map(({ uuid }) => uuid));
  return fail(
    uuids.filter((uuid) => !there.has(uuid)),
    'no-such-device',
  );
}

/** What links and mails to accounts need. If a mail server is configured, this process sends the mails. */
export function startAccountMail(
  shared: Shared,
): Pick<AccountsOptions, 'refusals' | 'linkKeys' | 'hasMail' | 'hasConsole'> {
  const refusals = startRefusals(shared);
  const options = mailOptions(shared);
  if (options) startSending(shared, options, refusals);
  const hasConsole = shared.config.console.enabled;
  return { refusals, linkKeys: shared.keys.mailLinks, hasMail: options !== null, hasConsole };
}

function startSending(
  shared: Shared,
  options: EmailOptions,
  refusals: Pick<RefusalLog, 'note'>,
): void {
  const { config, db, clock, keys, publicUrl, disposables } = shared;
  const log = shared.log.child({ component: 'accounts' });
  const driver = emailDriver(options);
  const onError = (err: unknown) =>
    log.warn(
      { event: 'accounts.mail-failed', err },
      'E-mails to accounts could not be read or written; the service will try again.',
    );
  const undelivered = createUndeliveredLog(
    (fields) =>
      log.warn(
        { event: 'accounts.mail-undelivered', ...fields },
        'E-mails to accounts could not be delivered.',
      ),
    clock,
  );
  const mailer = startMailer({
    db,
    clock,
    believedTs: shared.believed.believedTs,
    linkKeys: keys.mailLinks,
    publicUrl: publicUrl.get,
    refusals,
    pollIntervalMs: config.notifications.pollIntervalMs,
    onError,
    async sendMail(mail) {
      try {
        await driver.send(mail);
        return 'sent';
      } catch (error) {
        const failure = asDeliveryError(error);
        const again = failure.verdict === 'again';
        undelivered.note({ about: { mailId: mail.id }, host: null, via: 'email', failure, again });
        return again ? 'again' : 'never';
      }
    },
    tend: () => undelivered.flush(),
  });
  disposables.add('mails to accounts', async () => {
    await mailer.close();
    undelivered.flush({ isEnd: true });
    driver.close();
  });
}

const dayMs = 86_400_000;

/** Records this process's refused logins in the audit trail. */
function startRefusals({ db, clock, log, disposables }: Shared): RefusalLog {
  const onError = (err: unknown) =>
    log
      .child({ component: 'audit' })
      .warn(
        { event: 'audit.unwritten', err },
        'Refused logins could not be written to the audit trail; the service will try again.',
      );
  const refusals = startRefusalLog({ db, clock, onError });
  disposables.add('refused logins', () => refusals.close());
  return refusals;
}

/** Records that a rule ended a session: a refresh token was used twice, or there was one login too many. */
export function writeEndedSessions({
  db,
  clock,
  log,
}: Pick<Shared, 'db' | 'clock' | 'log'>): (ended: EndedSession) => void {
  return ({ accountId, sessionId: session, reason, address }) => {
    const actor = { by: 'service', sessionId: null, address } as const;
    const details = { session, reason };
    const entry = { kind: 'session-ended', actor, ts: clock(), details } as const;
    insertEntry(db, accountId, entry).catch((err: unknown) =>
      log
        .child({ component: 'audit' })
        .warn(
          { event: 'audit.unwritten', err },
          'The end of a session could not be written to the audit trail.',
        ),
    );
  };
}

/** A chore of the upkeep. */
function forgetOldEntries({ config, db }: Shared): Chore {
  return async (nowTs, { signal }) => {
    await forgetEntries(db, nowTs - config.audit.days * dayMs, signal);
  };
}

/** A chore of the upkeep: former versions and profiles are kept as long as events. */
function forgetOldVersions({ db }: Shared): Chore {
  return async (nowTs, { kept, signal }) => {
    if (kept.eventsDays === Infinity) return;
    const beforeTs = nowTs - kept.eventsDays * dayMs;
    await forgetVersions(db, beforeTs, signal);
    await forgetSpans(db, beforeTs, signal);
  };
}

const clearEveryMs = 30_000;

/** Keeps the history for as long as configured, and deletes what removed devices and accounts left. */
export async function startHistoryCare(
  shared: Shared,
  isLiveSession: (sessionId: string) => Promise<boolean>,
) {
  const { log, db, bus, believed, monotonicClock, disposables } = shared;
  const uncompressed = new Gauge({
    name: 'history_uncompressed_chunks',
    help:
      'Chunks that TimescaleDB should have compressed more than a day ago, by table; absent if ' +
      'there are none.',
    labelNames: ['relation'],
    registers: [shared.metrics.registry],
  });
  const historyLog = log.child({ component: 'history' });
  const onError = (err: unknown) =>
    historyLog.warn(
      { event: 'history.upkeep-failed', err },
      'The upkeep of the history failed; the service will try again in an hour.',
    );
  const onFailedJobs = (jobs: FailedJob[]) => {
    uncompressed.reset();
    for (const { relation, chunks } of jobs) uncompressed.set({ relation }, chunks);
    if (jobs.length > 0)
      historyLog.warn(
        { event: 'history.jobs-failed', jobs },
        'Parts of the history should have been compressed more than a day ago, but are not.',
      );
  };
  const onClearingError = (err: unknown) =>
    historyLog.warn(
      { event: 'history.purge-failed', err },
      'Data of a removed device or account could not be deleted; the service will try again within a minute.',
    );
  const clearing = createClearing({
    db,
    monotonicClock,
    detach: (accountId, limit) => detachDevices(db, bus, accountId, limit),
    onError: onClearingError,
  });
  const removal = createDeviceRemoval({ db, bus, startClearing: clearing.start });
  // Resumes what another process did not finish because it was killed.
  const stopClearing = startEvery(clearEveryMs, (signal) =>
    clearing.resume(signal).catch(onClearingError),
  );
  disposables.add('clearing of removed devices', async () => {
    await stopClearing();
    await clearing.close();
  });
  const chores: Chore[] = [
    (nowTs, { kept }) => compactActivity(db, kept, nowTs),
    (nowTs) => forgetGaps(db, nowTs),
    (nowTs, { kept, signal }) => forgetInputs(db, kept, nowTs, signal),
    (nowTs, { signal }) => forgetKeys(db, nowTs, signal),
    (nowTs) => forgetTickets(db, nowTs),
    (_nowTs, { signal }) => forgetTokensOfEnded(db, isLiveSession, signal),
    (nowTs) => forgetRefusedLogins(db, nowTs),
    (nowTs, { signal }) => forgetOldDisplays(db, nowTs, signal),
    (nowTs, { signal }) => forgetCommands(db, nowTs, signal),
    forgetOldEntries(shared),
    forgetOldJobs(shared),
    forgetOldBacktests(shared),
    forgetOldAlarms(shared),
    forgetOldVersions(shared),
  ];
  const onDoubt = () =>
    historyLog.warn(
      { event: 'history.upkeep-waits' },
      'Expired data is not deleted, because the clock is in doubt. `npm run clock` shows details.',
    );
  disposables.add(
    'upkeep of the history',
    startUpkeep({
      db,
      settleRetention: shared.kept.settle,
      believedTs: believed.believedTs,
      onError,
      onFailedJobs,
      onDoubt,
      chores,
      timelessChores: [(signal) => removeUnusedProfiles(db, signal)],
    }),
  );
  return { removal, startClearing: clearing.start };
}

const said = [
  { level: 'near', event: 'quotas.near', text: 'Accounts have used 80 % or more of a quota.' },
  { level: 'used-up', event: 'quotas.used-up', text: 'Accounts have used up a quota.' },
] as const;

/**
 * Tells accounts and the operator which quotas are nearly used up, once per installation, whichever process notices.
 */
export function startQuotaWatchOf(shared: Shared): void {
  const { config, db, clock, limitsOf, metrics, disposables } = shared;
  const log = shared.log.child({ component: 'quotas' });
  const observe = observeNearQuotas(metrics.registry);
  let known: NearCounts = new Map();
  const watch = startQuotaWatch({
    db,
    quotas: config.quotas,
    retention: config.retention,
    clock,
    notify: (tx, accountId, near, nowTs) =>
      enqueueQuotaNotice(tx, accountId, near, { quotasOf: limitsOf, nowTs }),
    onLook(counts) {
      observe(counts);
      for (const { level, event, text } of said) {
        const accounts = moreThan(known, counts, level);
        if (Object.keys(accounts).length > 0) log.warn({ event, accounts }, text);
      }
      known = counts;
    },
    onError: (err) =>
      log.warn(
        { event: 'quotas.unlooked', err },
        'The service could not check which quotas are almost used up; it will try again in a minute.',
      ),
  });
  disposables.add('quotas that near their end', () => watch.close());
}

/** How soon a command ends once its time is over. */
const expireEveryMs = 1_000;

/** Ends commands whose time is over. Any process may: each ends once. Nothing ends while the clock is in doubt. */
export function startCommandExpiry({ db, bus, believed, log, disposables }: Shared): void {
  async function expire(): Promise<void> {
    const nowTs = believed.believedTs();
    const expired = nowTs === null ? [] : await expireCommands(db, nowTs);
    for (const { accountId, commandId, deviceAuthUuid: uuid } of expired) {
      bus.publish('command', { accountId, commandId });
      if (uuid !== null) bus.publish('due', { uuid, topic: 'command' });
    }
  }
  const onError = (err: unknown) =>
    log
      .child({ component: 'commands' })
      .warn(
        { event: 'commands.unexpired', err },
        'Commands whose time is over could not be ended; the service will try again in a second.',
      );
  disposables.add(
    'expiry of commands',
    startEvery(expireEveryMs, () => expire().catch(onError)),
  );
}

/** Counting reads all devices. */
const countEveryMs = 60_000;
/** Between two lines that say the same number. */
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
  let logged: { left: number; atMs: number } | null = null;

  function tell(left: number): void {
    const monotonicMs = monotonicClock();
    if (
      logged !== null &&
      (left === logged.left || left > 0) &&
      monotonicMs - logged.atMs < tellEveryMs
    )
      return;
    logged = { left, atMs: monotonicMs };
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
