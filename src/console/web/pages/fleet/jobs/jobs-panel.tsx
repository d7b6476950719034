import { useEffect } from 'preact/hooks';
import type { JobEntry } from '../../../api/jobs.ts';
import { count, t } from '../../../text/t.ts';
import { followJobs, jobs } from './jobs.ts';
import { JobView } from '../jobs.tsx';

/** What is done with many devices: under way, or ended a short time ago. */
export function JobsPanel() {
  useEffect(followJobs, []);
  if (jobs.value.length === 0) return null;
  const running = jobs.value.filter(({ state }) => state === 'running');
  const [newest, ...earlier] = jobs.value.filter(({ state }) => state !== 'running');
  const shown = newest ? [...running, newest] : running;
  return (
    <section class="panel panel-flush jobs" aria-label={t('jobs.title')}>
      <List of={shown} />
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
