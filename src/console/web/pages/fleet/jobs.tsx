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
import { clock, now } from '../../app/now.ts';
import { accountOf } from '../../app/session.ts';
import { readOpenAlarms } from '../../app/stream.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, Problem } from '../../parts/panel.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatNumber, formatTime, formatValue } from '../../text/format.ts';
import { count, t, tryText } from '../../text/t.ts';

/** Actions on many devices, or on many alarms, that are running or ended a short time ago. */
export function JobsPanel({ of }: { of: 'devices' | 'alarms' }) {
  useEffect(followJobs, []);
  const own = jobs.value.filter((job) => isOnAlarms(job) === (of === 'alarms'));
  if (own.length === 0) return null;
  const running = own.filter(({ state }) => state === 'running');
  const ended = own.filter(({ state }) => state !== 'running');
  // What ended a while ago takes a line, unless somebody must know of it.
  const isNews = ({ endedTs = 0, failures }: JobEntry) =>
    failures > 0 || endedTs > clock.value - newsMs;
  const news = ended.slice(0, 1).filter(isNews);
  const earlier = ended.slice(news.length);
  const shown = [...running, ...news];
  return (
    <section class="panel panel-flush jobs" aria-label={t('jobs.title')}>
      {shown.length > 0 && <List of={shown} />}
      {earlier.length > 0 && (
        <details class="jobs-earlier">
          <summary>{count('jobs.earlier', earlier.length)}</summary>
          <List of={earlier} />
        </details>
      )}
    </section>
  );
}

function List({ of }: { of: readonly JobEntry[] }) {
  return (
    <ul>
      {of.map((job) => (
        <JobView key={job.jobId} job={job} />
      ))}
    </ul>
  );
}

/** Running and recent jobs, also those that another page started. */
const jobs = signal<JobEntry[]>([]);

/** Jobs that somebody has dismissed. */
const dismissed = new Set<string>();
const shownMs = 15 * 60_000;
const newsMs = 2 * 60_000;

/** How often to ask: often for progress, otherwise rarely, to see jobs that others started. */
const busyMs = 1_000;
const idleMs = 30_000;

const whose = computed(() => accountOf()?.accountAuthUuid);
effect(() => {
  void whose.value;
  jobs.value = [];
});

async function readJobs(signal?: AbortSignal): Promise<void> {
  const before = jobs.peek();
  const all = await listJobs(signal);
  const shown = all.filter(
    ({ jobId, endedTs }) =>
      !dismissed.has(jobId) && (endedTs === undefined || endedTs > now() - shownMs),
  );
  jobs.value = shown;
  const isRunning = (of: JobEntry[], jobId: string) =>
    of.some((job) => job.jobId === jobId && job.state === 'running');
  if (!before.some(({ jobId }) => isRunning(before, jobId) && !isRunning(shown, jobId))) return;
  reload('fleet/');
  reload('labels');
  reload('alarms/');
  await readOpenAlarms();
}

function dismiss(jobId: string): void {
  dismissed.add(jobId);
  jobs.value = jobs.value.filter((job) => job.jobId !== jobId);
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

/** How long the service takes back that an alarm was closed. */
const reopenMs = 60_000;

/** What undoes a job; null: nothing does, as with removed devices, or it is too late. */
function undoOf({ jobId, action, labels, endedTs = 0 }: JobEntry): (() => Promise<void>) | null {
  const named = labels ? { labels } : {};
  switch (action) {
    case 'label':
      return () => begin({ action: 'unlabel', jobId, ...named });
    case 'unlabel':
      return () => begin({ action: 'label', jobId, ...named });
    case 'mute':
      return () => begin({ action: 'unmute', jobId });
    case 'limits':
    case 'profile':
    case 'label-limits':
    case 'restore':
      return () => begin({ action: 'restore', jobId });
    case 'snooze':
      return () => beginOnAlarms({ action: 'unsnooze', jobId });
    case 'close':
      return clock.value - endedTs < reopenMs
        ? () => beginOnAlarms({ action: 'reopen', jobId })
        : null;
    default:
      return null;
  }
}

/** A job's progress and failures, and buttons to stop or undo it. */
function JobView({ job }: { job: JobEntry }) {
  const [error, setError] = useState<unknown>(null);
  const { jobId, state, done, of, failures, endedTs } = job;
  const takeBack = undoOf(job);
  const run = async (work: () => Promise<unknown>) => {
    setError(null);
    await work().catch(setError);
  };
  const stop = () =>
    run(async () => {
      await stopJob(jobId);
      await readJobs();
    });
  const undo = () =>
    run(async () => {
      await takeBack?.();
      dismiss(jobId);
    });
  const text = sayJob(job);
  return (
    <li class="job">
      <div class="job-line">
        <p class="job-text">
          {state !== 'running' && <Icon name={failures > 0 ? 'warn' : 'check'} />}
          <span>{text}</span>
          {endedTs !== undefined && <Ago ts={endedTs} />}
        </p>
        {state === 'running' ? (
          <button type="button" class="button" onClick={() => void stop()}>
            {t('jobs.stop')}
          </button>
        ) : (
          <>
            {takeBack && done > failures && (
              <button type="button" class="button" onClick={() => void undo()}>
                {t('jobs.undo')}
              </button>
            )}
            <button type="button" class="button" onClick={() => dismiss(jobId)}>
              {t('jobs.dismiss')}
            </button>
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
      {failures > 0 && (
        <details class="job-failures">
          <summary>
            {count(isOnAlarms(job) ? 'jobs.failedAlarms' : 'jobs.failed', failures)}
          </summary>
          <Failures jobId={jobId} failures={failures} />
        </details>
      )}
      {error !== null && <Problem error={error} />}
    </li>
  );
}

/** What a job does or has done, and with how many devices. */
function sayJob({ action, labels = [], untilTs, purposes = [], ...job }: JobEntry): string {
  const { state, done, of, failures } = job;
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
  const number = state === 'running' ? of : done - failures;
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
            <FailedDevice uuid={alarm.deviceAuthUuid} name={alarm.deviceName} />
          )}{' '}
          {alarm.eventName && <strong>{alarm.eventName}</strong>}{' '}
          {tryText(`jobs.reason.${alarm.reason}`, alarm.reason)} {say(alarm).join(', ')}
        </li>
      ))}
    </>
  );
}

/** A link to a device; of one that is no longer there, its identifier. */
function FailedDevice({ uuid, name }: { uuid: string; name: string | undefined }) {
  if (name === undefined) return <code>{uuid}</code>;
  return <Link to={`devices/${uuid}`}>{name.trim() || t('fleet.unnamed')}</Link>;
}

const shown = 100;

/** Which devices or alarms failed, and why. */
function Failures({ jobId, failures }: { jobId: string; failures: number }) {
  const query = useQuery(`job/${jobId}/${failures}`, (signal) => getJob(jobId, signal));
  return (
    <Answered query={query}>
      {({ failed, failedAlarms = [] }) => (
        <>
          <ul class="failures">
            <FailedAlarms alarms={failedAlarms.slice(0, shown)} />
            {failed.slice(0, shown).map(({ deviceAuthUuid, deviceName, reason }) => (
              <li key={deviceAuthUuid}>
                <FailedDevice uuid={deviceAuthUuid} name={deviceName} />{' '}
                {tryText(`jobs.reason.${reason}`, reason)}
              </li>
            ))}
          </ul>
          {failures > shown && <p class="fine">{count('fleet.more', failures - shown)}</p>}
        </>
      )}
    </Answered>
  );
}
