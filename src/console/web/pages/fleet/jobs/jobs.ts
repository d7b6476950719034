import { computed, effect, signal } from '@preact/signals';
import { reload } from '../../../api/cache.ts';
import { listJobs, startAction, type JobEntry } from '../../../api/jobs.ts';
import type { DeviceAction } from '../../../api/types.ts';
import { now } from '../../../app/now.ts';
import { accountOf } from '../../../app/session.ts';

/** What is under way, and what ended lately: whoever opens the page later finds it, too. */
export const jobs = signal<JobEntry[]>([]);

/** Those that somebody has put aside. */
const dismissed = new Set<string>();
const shownMs = 15 * 60_000;

/** How often it is asked how far they are; otherwise it is enough to see what others began. */
const busyMs = 1_000;
const idleMs = 30_000;

const whose = computed(() => accountOf()?.accountAuthUuid);
effect(() => {
  void whose.value;
  jobs.value = [];
});

export async function readJobs(signal?: AbortSignal): Promise<void> {
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
}

export function dismiss(jobId: string): void {
  dismissed.add(jobId);
  jobs.value = jobs.value.filter((job) => job.jobId !== jobId);
}

/** Begins one, and shows it at once. */
export async function begin(body: DeviceAction): Promise<void> {
  await startAction(body);
  // It has begun, whatever becomes of this.
  await readJobs().catch(() => undefined);
  wake();
}

let wake = () => {};

/** Follows them while the page is there and visible. Gives what ends that. */
export function followJobs(): () => void {
  const gone = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const ask = async () => {
    clearTimeout(timer);
    // What went wrong is said where somebody does something; here it is tried again.
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
