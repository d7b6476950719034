import type { JobEntry } from '../../../api/jobs.ts';
import { formatTime } from '../../../text/format.ts';
import { count, t } from '../../../text/t.ts';

/** What a job does or has done, and with how many devices. */
export function sayJob({ action, labels = [], untilTs, ...job }: JobEntry): string {
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
      // What a later service can do.
      default:
        return action;
    }
  })();
  const number = state === 'running' ? of : done - failures;
  const text = `${what}: ${count('fleet.devices', number)}`;
  return state === 'stopped' ? `${text} (${t('jobs.stopped')})` : text;
}
