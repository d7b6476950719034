import { type RunAlarmsDeps, runDue } from '../decide.ts';

export type TimerOptions = RunAlarmsDeps & {
  clock: () => number;
  /** How often due alarms are looked for. */
  pollIntervalMs: number;
  onError: (error: unknown) => void;
};

export type AlarmTimer = {
  /** When it last did all that was due, ms; null: not yet. */
  lastTs: () => number | null;
  /** Ends after what it is at. */
  close: () => Promise<void>;
};

/**
 * Looks for alarms whose time has come, until it is closed. Several processes may: each takes the devices that
 * no other one has.
 */
export function startAlarmTimer(options: TimerOptions): AlarmTimer {
  const { clock, pollIntervalMs, onError } = options;
  let running: Promise<void> | null = null;
  let closed = false;
  let lastTs: number | null = null;

  async function runAll(): Promise<void> {
    const nowTs = clock();
    let isMore = true;
    while (isMore && !closed) ({ isMore } = await runDue(options, nowTs));
    lastTs = nowTs;
  }

  function look(): void {
    if (closed || running) return;
    running = runAll()
      .catch(onError)
      .finally(() => {
        running = null;
      });
  }

  const timer = setInterval(look, pollIntervalMs);
  look();
  return {
    lastTs: () => lastTs,
    async close() {
      closed = true;
      clearInterval(timer);
      await running;
    },
  };
}
