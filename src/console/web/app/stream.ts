import { effect, signal } from '@preact/signals';
import { openEvents } from '../api/events.ts';
import type { EventView, ListedAlarm } from '../api/types.ts';
import { now } from './now.ts';
import { accountOf } from './session.ts';

/** Since when nothing live arrives, ms; null while the stream is there. */
export const awaySince = signal<number | null>(null);

export type StreamMessage =
  | { kind: 'event'; event: EventView }
  | { kind: 'alarm'; alarm: ListedAlarm | undefined; deviceAuthUuid: string };

const listeners = new Set<(message: StreamMessage) => void>();

/** Told of what happens to devices and alarms. Gives what ends that. */
export function onStream(listener: (message: StreamMessage) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const retryMs = 5_000;

/** One stream a tab, while it is visible and somebody is signed in. */
export function startStream(): void {
  const isVisible = signal(document.visibilityState === 'visible');
  document.addEventListener(
    'visibilitychange',
    () => (isVisible.value = document.visibilityState === 'visible'),
  );
  effect(() => {
    const uuid = accountOf()?.accountAuthUuid;
    if (!isVisible.value || uuid === undefined) return undefined;
    return open();
  });
}

function open(): () => void {
  let source = connect();
  let timer: ReturnType<typeof setTimeout> | undefined;
  function connect() {
    const opened = openEvents();
    opened.addEventListener('open', () => (awaySince.value = null));
    opened.addEventListener('error', () => {
      awaySince.value ??= now();
      // Refused, and not only broken off: the browser does not try again by itself.
      if (opened.readyState === EventSource.CLOSED)
        timer = setTimeout(() => (source = connect()), retryMs);
    });
    opened.addEventListener('message', ({ data }: MessageEvent<string>) =>
      tell({ kind: 'event', event: JSON.parse(data) as EventView }),
    );
    opened.addEventListener('alarm', ({ data }: MessageEvent<string>) => {
      const change = JSON.parse(data) as { alarm?: ListedAlarm; deviceAuthUuid: string };
      const { alarm, deviceAuthUuid } = change;
      tell({ kind: 'alarm', alarm, deviceAuthUuid });
    });
    return opened;
  }
  return () => {
    clearTimeout(timer);
    source.close();
    awaySince.value = null;
  };
}

function tell(message: StreamMessage): void {
  for (const listener of listeners) listener(message);
}
