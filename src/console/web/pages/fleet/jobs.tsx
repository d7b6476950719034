import { computed, effect, signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { reload, useQuery } from '../../api/cache.ts';
import { getJob, type JobEntry, listJobs, startAction, stopJob } from '../../api/devices.ts';
import type { DeviceAction } from '../../api/types.ts';
import { clock, now } from '../../app/now.ts';
import { accountOf } from '../../app/session.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Answered, Problem } from '../../parts/panel.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatNumber, formatTime } from '../../text/format.ts';
import { count, t, tryText } from '../../text/t.ts';

/** Actions on many devices that are running or ended a short time ago. */
export function JobsPanel() {
  useEffect(followJobs, []);
  if (jobs.value.length === 0) return null;
  const running = jobs.value.filter(({ state }) => state === 'running');
  const ended = jobs.value.filter(({ state }) => state !== 'running');
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

/** Jobs on alarms, not on devices. */
const ofAlarms: ReadonlySet<string> = new Set([
  'acknowledge',
  'close',
  'reopen',
  'snooze',
  'unsnooze',
]);

async function readJobs(signal?: AbortSignal): Promise<void> {
  const before = jobs.peek();
  const all = await listJobs(signal);
  const shown = all.filter(
    ({ jobId, action, endedTs }) =>
      !ofAlarms.has(action) &&
      !dismissed.has(jobId) &&
      (endedTs === undefined || endedTs > now() - shownMs),
  );
  jobs.value = shown;
  const isRunning = (of: JobEntry[], jobId: string) =>
    of.some((job) => job.jobId === jobId && job.state === 'running');
  if (!before.some(({ jobId }) => isRunning(before, jobId) && !isRunning(shown, jobId))) return;
  reload('fleet/');
  reload('labels');
}

function dismiss(jobId: string): void {
  dismissed.add(jobId);
  jobs.value = jobs.value.filter((job) => job.jobId !== jobId);
}

/** Starts a job, and shows it at once. */
export async function begin(body: DeviceAction): Promise<void> {
  await startAction(body);
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

/** The action that undoes it; removing devices and ending mutes cannot be undone. */
const opposites = { label: 'unlabel', unlabel: 'label', mute: 'unmute' } as const;
const oppositeOf = (action: string) =>
  action in opposites ? opposites[action as keyof typeof opposites] : null;

/** A job's progress and failures, and buttons to stop or undo it. */
function JobView({ job }: { job: JobEntry }) {
  const [error, setError] = useState<unknown>(null);
  const { jobId, state, done, of, failures, labels, endedTs } = job;
  const opposite = oppositeOf(job.action);
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
      if (opposite) await begin({ action: opposite, jobId, ...(labels ? { labels } : {}) });
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
            {opposite && done > failures && (
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
          <summary>{count('jobs.failed', failures)}</summary>
          <Failures jobId={jobId} failures={failures} />
        </details>
      )}
      {error !== null && <Problem error={error} />}
    </li>
  );
}

/** What a job does or has done, and with how many devices. */
function sayJob({ action, labels = [], untilTs, ...job }: JobEntry): string {
  const { state, done, of, failures } = job;
  const label = labels.join(', ');
  const tense = state === 'running' ? 'running' : 'done';
  const what = (() => {
    switch (action) {
      case 'label':
      case 'unlabel':
        return t(`jobs.${action}.${tense}`, { label });
      case 'mute':
        return t(`jobs.mute.${tense}`, { time: untilTs === undefined ? '' : formatTime(untilTs) });
      case 'unmute':
      case 'remove':
        return t(`jobs.${action}.${tense}`);
      // An action of a later version of the service.
      default:
        return action;
    }
  })();
  const number = state === 'running' ? of : done - failures;
  const text = `${what}: ${count('fleet.devices', number)}`;
  return state === 'stopped' ? `${text} (${t('jobs.stopped')})` : text;
}

const shown = 100;

/** Which devices failed, and why. */
function Failures({ jobId, failures }: { jobId: string; failures: number }) {
  const query = useQuery(`job/${jobId}/${failures}`, (signal) => getJob(jobId, signal));
  return (
    <Answered query={query}>
      {({ failed }) => (
        <>
          <ul class="failures">
            {failed.slice(0, shown).map(({ deviceAuthUuid, reason }) => (
              <li key={deviceAuthUuid}>
                {reason === 'no-such-device' ? (
                  <code>{deviceAuthUuid}</code>
                ) : (
                  <Link to={`devices/${deviceAuthUuid}`}>{deviceAuthUuid}</Link>
                )}{' '}
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
