import { pause } from '../lib/wait.ts';
import type { NotificationLog } from './channels/channel.ts';

type HeartbeatOptions = {
  url: string;
  everyMs: number;
  /** What must hold, each with a name for the log. A check that rejects counts as false. */
  checks: Record<string, () => boolean | Promise<boolean>>;
  log: NotificationLog;
};

const timeoutMs = 10_000;

/**
 * Requests a URL as long as all is well, so that a watcher elsewhere notices when it is not, or when this service is
 * gone. The answer's body is not read; a failure is logged once.
 */
export function startHeartbeat(options: HeartbeatOptions): { close: () => Promise<void> } {
  const closing = new AbortController();
  const ended = beat(options, closing.signal);
  return {
    close: async () => {
      closing.abort();
      await ended;
    },
  };
}

async function beat(options: HeartbeatOptions, closing: AbortSignal): Promise<void> {
  const { url, everyMs, checks, log } = options;
  let said = '';
  while (!closing.aborted) {
    const failing = await listFailing(checks);
    const failure = failing.length > 0 ? null : await request(url, closing);
    const state = failing.length > 0 ? failing.join(', ') : (failure ?? '');
    if (state !== said && !closing.aborted) say(log, failing, failure);
    said = state;
    await pause(everyMs, closing);
  }
}

async function listFailing(checks: HeartbeatOptions['checks']): Promise<string[]> {
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => {
      try {
        return (await check()) ? [] : [name];
      } catch {
        return [name];
      }
    }),
  );
  return results.flat();
}

/** Null if the answer was a success; otherwise what went wrong. */
async function request(url: string, closing: AbortSignal): Promise<string | null> {
  try {
    const signal = AbortSignal.any([closing, AbortSignal.timeout(timeoutMs)]);
    const response = await fetch(url, { signal, redirect: 'manual' });
    await response.body?.cancel();
    return response.ok ? null : `status ${response.status}`;
  } catch {
    return 'no answer';
  }
}

function say(log: NotificationLog, failing: string[], failure: string | null): void {
  if (failing.length > 0)
    log.warn(
      { event: 'heartbeat.withheld', failing },
      'The heartbeat is not sent, because a check of this process fails.',
    );
  else if (failure !== null)
    log.warn(
      { event: 'heartbeat.unanswered', text: failure },
      'The heartbeat was sent but its receiver did not report success.',
    );
  else log.info({ event: 'heartbeat.sent' }, 'The heartbeat is sent again.');
}
