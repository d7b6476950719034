import { useState } from 'preact/hooks';
import { type JobEntry, stopJob } from '../../api/jobs.ts';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/status.tsx';
import { formatNumber } from '../../text/format.ts';
import { count, t } from '../../text/t.ts';
import { Failures } from './jobs/failures.tsx';
import { begin, dismiss, readJobs } from './jobs/jobs.ts';
import { sayJob } from './jobs/say-job.ts';

/** What takes it back; of removing and of ending mutes nothing does. */
const opposites = { label: 'unlabel', unlabel: 'label', mute: 'unmute' } as const;
const oppositeOf = (action: string) =>
  action in opposites ? opposites[action as keyof typeof opposites] : null;

/** How far one is, what failed, and how to stop it or to take it back. */
export function JobView({ job }: { job: JobEntry }) {
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
