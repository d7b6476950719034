import { computed, effect, signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import {
  getJob,
  type JobEntry,
  type LabelLimit,
  listJobs,
  saveLabelLimits,
  startAction,
  stopJob,
} from '../../api/devices.ts';
import { type AlarmAction, startAlarmAction } from '../../api/events.ts';
import { listLatest } from '../../api/measurements.ts';
import type { DeviceAction, Job } from '../../api/types.ts';
import { clock } from '../../app/now.ts';
import { accountOf } from '../../app/session.ts';
import { readOpenAlarms } from '../../app/stream.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, Problem } from '../../parts/panel.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatFullTime, formatNumber, formatTime, formatValue } from '../../text/format.ts';
import { count, t, tryText } from '../../text/t.ts';

/**
 * Actions on many devices, or on many alarms, that are running, ended a short time ago or can be undone; and the way to
 * all of them.
 */
export function JobsPanel({ of }: { of: 'devices' | 'alarms' }) {
  useEffect(followJobs, []);
  const own = jobs.value.filter(
    (job) => isShown(job, clock.value) && isOnAlarms(job) === (of === 'alarms'),
  );
  if (own.length === 0) return null;
  const running = own.filter(({ state }) => state === 'running');
  const ended = own.filter(({ state }) => state !== 'running');
  // What ended a while ago takes a line, unless somebody must know of it.
  const isNews = ({ endedTs = 0, failures, undoneBy }: JobEntry) =>
    undoneBy === undefined && (failures > 0 || endedTs > clock.value - newsMs);
  const news = ended.slice(0, 1).filter(isNews);
  const earlier = ended.slice(news.length);
  const shown = [...running, ...news];
  return (
    <section class="panel panel-flush jobs" aria-label={t('jobs.title')}>
      {shown.length > 0 && <JobList of={shown} canDismiss />}
      {earlier.length > 0 && (
        <details class="jobs-earlier">
          <summary>{count('jobs.earlier', earlier.length)}</summary>
          <JobList of={earlier} canDismiss />
          <p class="job">
            <Link to="actions" class="link">
              {t('jobs.all')}
            </Link>
          </p>
        </details>
      )}
    </section>
  );
}

/** All actions on devices and alarms that the service remembers, the newest first; undefined until they are known. */
export function useJobs(): { all: readonly JobEntry[] | undefined } {
  useEffect(followJobs, []);
  return { all: isKnown.value ? jobs.value : undefined };
}

type JobListProps = {
  of: readonly JobEntry[];
  /** Whether each can be taken off the page. */
  canDismiss?: boolean;
};

/** Actions on many devices or alarms: how many, who, when, what failed, and what undoes them. */
export function JobList({ of, canDismiss = false }: JobListProps) {
  return (
    <ul>
      {of.map((job) => (
        <JobView key={job.jobId} job={job} canDismiss={canDismiss} />
      ))}
    </ul>
  );
}

/** All jobs that the service remembers, also those that another page started; backtests change nothing. */
const jobs = signal<JobEntry[]>([]);
const isKnown = signal(false);

/** Jobs that somebody has dismissed: they are still on the page of all. */
const dismissed = signal<ReadonlySet<string>>(new Set());
const shownMs = 15 * 60_000;
const newsMs = 2 * 60_000;

/** How often to ask: often for progress, otherwise rarely, to see jobs that others started. */
const busyMs = 1_000;
const idleMs = 30_000;

const whose = computed(() => accountOf()?.accountAuthUuid);
effect(() => {
  void whose.value;
  jobs.value = [];
  isKnown.value = false;
});

/** What can be undone stays for as long. */
const isShown = ({ jobId, endedTs, undo }: JobEntry, nowTs: number): boolean =>
  !dismissed.value.has(jobId) &&
  (endedTs === undefined || endedTs > nowTs - shownMs || (undo?.untilTs ?? 0) > nowTs);

async function readJobs(signal?: AbortSignal): Promise<void> {
  const before = jobs.peek();
  const read = (await listJobs(signal)).filter(({ action }) => action !== 'backtest');
  jobs.value = read;
  isKnown.value = true;
  const isRunning = (of: JobEntry[], jobId: string) =>
    of.some((job) => job.jobId === jobId && job.state === 'running');
  if (!before.some(({ jobId }) => isRunning(before, jobId) && !isRunning(read, jobId))) return;
  reload('fleet/');
  reload('labels');
  reload('alarms/');
  await readOpenAlarms();
}

function dismiss(jobId: string): void {
  dismissed.value = new Set([...dismissed.value, jobId]);
}

/** Starts a job, and shows it at once. */
export const begin = (body: DeviceAction): Promise<void> => beginJob(() => startAction(body));

/** The same with alarms. */
export const beginOnAlarms = (body: AlarmAction): Promise<void> =>
  beginJob(() => startAlarmAction(body));

/** Gives labels their limits. */
export const beginOnLabels = (limits: readonly LabelLimit[]): Promise<void> =>
  beginJob(() => saveLabelLimits(limits));

async function beginJob(start: () => Promise<unknown>): Promise<void> {
  await start();
  // The job has started even if this fails.
  await readJobs().catch(() => undefined);
  wake();
}

let wake = () => {};

/** Follows the jobs while the page is open and visible. Returns the function that stops it. */
function followJobs(): () => void {
  const gone = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ask = async () => {
    clearTimeout(timer);
    // No error is shown here; the next poll tries again.
    if (document.visibilityState === 'visible') await readJobs(gone.signal).catch(() => undefined);
    if (gone.signal.aborted) return;
    const isBusy = jobs.peek().some(({ state }) => state === 'running');
    clearTimeout(timer);
    timer = setTimeout(again, isBusy ? busyMs : idleMs);
  };
  const again = () => void ask();
  wake = again;
  document.addEventListener('visibilitychange', again);
  again();
  return () => {
    gone.abort();
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', again);
  };
}

const alarmActions = ['acknowledge', 'close', 'reopen', 'snooze', 'unsnooze'];
const isOnAlarms = ({ action }: Pick<JobEntry, 'action'>) => alarmActions.includes(action);

/** Starts what takes a job back. */
function takeBack({ jobId, action, labels }: JobEntry, by: string): Promise<void> {
  return isOnAlarms({ action })
    ? beginOnAlarms({ action: by as AlarmAction['action'], jobId })
    : begin({ action: by as DeviceAction['action'], jobId, ...(labels ? { labels } : {}) });
}

/** A job's progress, who started it, what failed, and buttons to stop or undo it. */
function JobView({ job, canDismiss }: { job: JobEntry; canDismiss: boolean }) {
  const [error, setError] = useState<unknown>(null);
  const { jobId, state, done, of, failures, kept, endedTs, undo, undoneBy } = job;
  const run = async (work: () => Promise<unknown>) => {
    setError(null);
    await work().catch(setError);
  };
  const stop = () =>
    run(async () => {
      await stopJob(jobId);
      await readJobs();
    });
  const canUndo = undo !== undefined && undo.untilTs > clock.value;
  const text = sayJob(job);
  return (
    <li class="job">
      <div class="job-line">
        <p class="job-text">
          {state !== 'running' && <Icon name={failures > 0 ? 'warn' : 'check'} />}
          <span>
            {text}
            {undoneBy !== undefined && <span class="tag">{t('jobs.undone')}</span>}
            {!canDismiss && <span class="fine job-by">{sayBy(job)}</span>}
          </span>
          {endedTs !== undefined && <Ago ts={endedTs} />}
        </p>
        {state === 'running' ? (
          <button type="button" class="button" onClick={() => void stop()}>
            {t('jobs.stop')}
          </button>
        ) : (
          <>
            {canUndo && (
              <>
                <span class="fine">{t('jobs.undoUntil', { time: formatTime(undo.untilTs) })}</span>
                <button
                  type="button"
                  class="button"
                  onClick={() => void run(() => takeBack(job, undo.action))}
                >
                  {t('jobs.undo')}
                </button>
              </>
            )}
            {canDismiss && (
              <button type="button" class="button" onClick={() => dismiss(jobId)}>
                {t('jobs.dismiss')}
              </button>
            )}
          </>
        )}
      </div>
      {state === 'running' && (
        <div class="job-progress">
          <progress value={done} max={of} aria-label={text} />
          <span class="fine">
            {t('jobs.progress', { done: formatNumber(done), of: formatNumber(of) })}
          </span>
        </div>
      )}
      <Named
        job={job}
        number={failures}
        title={count(isOnAlarms(job) ? 'jobs.failedAlarms' : 'jobs.failed', failures)}
        pick={({ failed }) => failed}
      />
      <Named
        job={job}
        number={kept}
        title={count('jobs.kept', kept)}
        pick={({ keptDevices = [] }) => keptDevices}
      />
      {error !== null && <Problem error={error} />}
    </li>
  );
}

/** Who started it, and when. */
function sayBy({ by, keyName, startedTs }: JobEntry): string {
  const who = keyName === undefined ? t(`audit.by.${by}`) : t('jobs.byKey', { name: keyName });
  return `${formatFullTime(startedTs)}, ${who}`;
}

/** What a job does or has done, and with how many devices. */
function sayJob({ action, labels = [], untilTs, purposes = [], ...job }: JobEntry): string {
  const { state, done, of, failures, kept } = job;
  const label = labels.join(', ');
  const tense = state === 'running' ? 'running' : 'done';
  const what = (() => {
    switch (action) {
      case 'label':
      case 'unlabel':
        return t(`jobs.${action}.${tense}`, { label });
      case 'profile':
        return t(`jobs.profile.${tense}`, { names: purposes.filter(Boolean).join(', ') || '…' });
      case 'mute':
        return t(`jobs.mute.${tense}`, { time: untilTs === undefined ? '' : formatTime(untilTs) });
      case 'snooze':
        return t(`jobs.snooze.${tense}`, {
          time: untilTs === undefined ? '' : formatTime(untilTs),
        });
      case 'acknowledge':
      case 'close':
      case 'reopen':
      case 'unsnooze':
      case 'unmute':
      case 'remove':
      case 'limits':
      case 'label-limits':
      case 'restore':
        return t(`jobs.${action}.${tense}`);
      // An action of a later version of the service.
      default:
        return action;
    }
  })();
  const number = state === 'running' ? of : done - failures - kept;
  const text = `${what}: ${count(isOnAlarms({ action }) ? 'jobs.alarms' : 'fleet.devices', number)}`;
  return state === 'stopped' ? `${text} (${t('jobs.stopped')})` : text;
}

type FailedAlarm = NonNullable<Job['failedAlarms']>[number];

type FailedAlarmsProps = { alarms: readonly FailedAlarm[] };

/** Alarms, each with its device, and the values that keep it open. */
function FailedAlarms({ alarms }: FailedAlarmsProps) {
  const uuids = new Set(alarms.flatMap(({ deviceAuthUuid = '' }) => deviceAuthUuid || []));
  // How values are shown.
  const { data = [] } = useQuery(`failed/${[...uuids].join()}`, (signal) =>
    listLatest([...uuids], signal),
  );
  const senses = new Map(data.map((each) => [`${each.deviceAuthUuid}/${each.sId}`, each]));
  const say = ({ deviceAuthUuid, values = [] }: FailedAlarm) =>
    values.map(({ sId, val, ts }) => {
      const sense = senses.get(`${deviceAuthUuid}/${sId}`);
      return `${sense?.name ?? sId} ${formatValue(val, sense)} (${formatTime(ts)})`;
    });
  return (
    <>
      {alarms.map((alarm) => (
        <li key={alarm.alarmId}>
          {alarm.deviceAuthUuid !== undefined && (
            <NamedDevice uuid={alarm.deviceAuthUuid} name={alarm.deviceName} />
          )}{' '}
          {alarm.eventName && <strong>{alarm.eventName}</strong>}{' '}
          {tryText(`jobs.reason.${alarm.reason}`, alarm.reason)} {say(alarm).join(', ')}
        </li>
      ))}
    </>
  );
}

/** A link to a device; of one that is no longer there, its identifier. */
function NamedDevice({ uuid, name }: { uuid: string; name: string | undefined }) {
  if (name === undefined) return <code>{uuid}</code>;
  return <Link to={`devices/${uuid}`}>{name.trim() || t('fleet.unnamed')}</Link>;
}

const mostShown = 100;

type NamedProps = {
  job: JobEntry;
  number: number;
  title: string;
  pick: (job: Job) => readonly { deviceAuthUuid: string; deviceName?: string; reason: string }[];
};

/** Which devices or alarms did not change, and why; nothing if there are none. */
function Named({ job, number, title, pick }: NamedProps) {
  const [isOpen, setIsOpen] = useState(false);
  if (number === 0) return null;
  return (
    <details class="job-failures" onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>{title}</summary>
      {isOpen && <Names job={job} number={number} pick={pick} />}
    </details>
  );
}

function Names({ job: { jobId, failures, kept }, number, pick }: Omit<NamedProps, 'title'>) {
  const query = useQuery(`job/${jobId}/${failures}/${kept}`, (signal) => getJob(jobId, signal));
  return (
    <Answered query={query}>
      {(job) => {
        const devices = pick(job);
        // Only failures are of alarms.
        const alarms = devices === job.failed ? (job.failedAlarms ?? []) : [];
        return (
          <>
            <ul class="failures">
              <FailedAlarms alarms={alarms.slice(0, mostShown)} />
              {devices.slice(0, mostShown).map(({ deviceAuthUuid, deviceName, reason }) => (
                <li key={deviceAuthUuid}>
                  <NamedDevice uuid={deviceAuthUuid} name={deviceName} />{' '}
                  {tryText(`jobs.reason.${reason}`, reason)}
                </li>
              ))}
            </ul>
            {number > mostShown && <p class="fine">{count('fleet.more', number - mostShown)}</p>}
          </>
        );
      }}
    </Answered>
  );
}
