import { effect, signal } from '@preact/signals';
import { reload } from '../api/cache.ts';
import { ApiError } from '../api/request.ts';
import { openStream, type LivePresence, type LiveValue } from '../api/stream.ts';
import type { EventView, ListedAlarm } from '../api/types.ts';
import { now } from './now.ts';
import { accountOf } from './session.ts';
import { createBatch } from './batch.ts';
import { watchedDevices } from './watched.ts';

/** Since when nothing live arrives, ms; null while the stream is there. */
export const awaySince = signal<number | null>(null);

export type StreamMessage =
  | { kind: 'event'; event: EventView }
  | { kind: 'alarm'; alarm: ListedAlarm | undefined; deviceAuthUuid: string }
  /** Of the devices that `useWatched` names. One can come twice. */
  | { kind: 'values'; values: readonly LiveValue[] }
  /** Devices that connected or left. */
  | { kind: 'presence'; devices: readonly LivePresence[] }
  /** Any device may have connected or left, been added, removed or changed. */
  | { kind: 'ask-again' }
  /** It begins now: what came before is not told. */
  | { kind: 'started' };

const listeners = new Set<(message: StreamMessage) => void>();

/** Told of what happens to devices and alarms. Gives what ends that. */
export function onStream(listener: (message: StreamMessage) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(message: StreamMessage): void {
  for (const listener of listeners) listener(message);
}

const retryMs = 5_000;
/** After a longer break pages ask again: less to send than all that happened. */
const resumableMs = 300_000;

/** Where the stream was when it was left. */
let left = { account: '', id: '', ts: 0 };
let hasStarted = false;

/** One stream a tab, while it is visible and somebody is signed in; another one for other devices. */
export function startStream(): void {
  const isVisible = signal(document.visibilityState === 'visible');
  document.addEventListener(
    'visibilitychange',
    () => (isVisible.value = document.visibilityState === 'visible'),
  );
  effect(() => {
    const account = accountOf()?.accountAuthUuid;
    const devices = watchedDevices.value;
    if (!isVisible.value || account === undefined) {
      awaySince.value = null;
      return undefined;
    }
    if (left.account !== account || now() - left.ts > resumableMs)
      left = { account, id: '', ts: 0 };
    return hold(devices);
  });
}

/** Keeps a stream open until it is ended. */
function hold(watched: readonly string[]): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let devices = watched;
  let hasEnded = false;
  const values = createBatch<LiveValue>((values) => tell({ kind: 'values', values }));
  const devicesBatch = createBatch<LivePresence>((devices) => tell({ kind: 'presence', devices }));

  const connect = async () => {
    const { value: since } = awaySince;
    if (since !== null && now() - since > resumableMs) left.id = '';
    try {
      const opened = await openStream({ devices, lastEventId: left.id });
      if (hasEnded) opened.close();
      else listen((source = opened));
    } catch (error) {
      if (hasEnded) return;
      const status = error instanceof ApiError ? error.status : 0;
      // An id of another database, after a restore; a device that was removed meanwhile.
      if (status === 400) left.id = '';
      if (status === 404) devices = [];
      retry();
    }
  };

  const retry = () => {
    awaySince.value ??= now();
    timer = setTimeout(() => void connect(), retryMs);
  };

  const listen = (opened: EventSource) => {
    const isResumed = left.id !== '';
    opened.addEventListener('open', () => {
      awaySince.value = null;
      if (!isResumed && left.id === '') start();
    });
    opened.addEventListener('error', () => {
      awaySince.value ??= now();
      // Refused, and not only broken off: the browser does not try again by itself.
      if (opened.readyState === EventSource.CLOSED) retry();
    });
    const on = (name: string, take: (data: string) => void) =>
      opened.addEventListener(name, ({ data, lastEventId }: MessageEvent<string>) => {
        left.id = lastEventId;
        take(data);
      });
    on('event', (data) => tell({ kind: 'event', event: JSON.parse(data) as EventView }));
    on('alarm', (data) => {
      type Change = { alarm?: ListedAlarm; deviceAuthUuid: string };
      const { alarm, deviceAuthUuid } = JSON.parse(data) as Change;
      tell({ kind: 'alarm', alarm, deviceAuthUuid });
    });
    on('measurement', (data) => values.add(JSON.parse(data) as LiveValue));
    on('device', (data) => devicesBatch.add(JSON.parse(data) as LivePresence));
    on('devices', () => tell({ kind: 'ask-again' }));
    on('opened', () => undefined);
  };

  void connect();
  return () => {
    hasEnded = true;
    clearTimeout(timer);
    source?.close();
    values.flush();
    devicesBatch.flush();
    left.ts = now();
  };
}

/** Pages have asked before the stream was there: between the two something may have happened. */
function start(): void {
  reload(hasStarted ? '' : 'latest/');
  hasStarted = true;
  tell({ kind: 'started' });
}
