import { effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { reload } from '../api/cache.ts';
import { listAlarms } from '../api/events.ts';
import { ApiError, call } from '../api/request.ts';
import type { EventView, LatestView, ListedAlarm, StreamedDevice } from '../api/types.ts';
import { now } from './now.ts';
import { accountOf } from './session.ts';
import { createBatch, throttle } from './throttle.ts';

/** Since when the stream has been down, ms; null while it is up. */
export const awaySince = signal<number | null>(null);

export type StreamMessage =
  | { kind: 'event'; event: EventView }
  | { kind: 'alarm'; alarm: ListedAlarm | undefined; deviceAuthUuid: string }
  /** Values of the devices that `useWatched` names. A value may come twice. */
  | { kind: 'values'; values: readonly LiveValue[] }
  /** Devices that connected or disconnected. */
  | { kind: 'presence'; devices: readonly LivePresence[] }
  /** Any device may have connected, disconnected, been added, removed or changed. */
  | { kind: 'ask-again' }
  /** The stream starts now; earlier messages were missed. */
  | { kind: 'started' };

const listeners = new Set<(message: StreamMessage) => void>();

/** Calls the listener with what happens to devices and alarms. Returns the function that unsubscribes. */
export function onStream(listener: (message: StreamMessage) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(message: StreamMessage): void {
  for (const listener of listeners) listener(message);
}

const retryMs = 5_000;
/** After a longer break pages repeat their queries, which is less to send than everything that happened. */
const resumableMs = 300_000;

/** The position of the stream when it was closed. */
let left = { account: '', id: '', ts: 0 };
let hasStarted = false;

/** One stream per tab, while it is visible and somebody is signed in; reopened when the watched devices change. */
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

/** Keeps a stream open, reconnecting as needed, until it is closed. */
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
      // 400: the id is from another database, after a restore. 404: a device was removed meanwhile.
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
      // Refused rather than interrupted: the browser does not retry by itself.
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

/** Pages sent their queries before the stream was open; something may have happened in between. */
function start(): void {
  reload(hasStarted ? '' : 'latest/');
  hasStarted = true;
  tell({ kind: 'started' });
}

/** As many as one stream can name. */
const most = 500;
/** So that leaving one page and opening another makes one change. */
const settleMs = 50;

const users = new Map<symbol, readonly string[]>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Devices whose values are on the screen, sorted. */
const watchedDevices = signal<readonly string[]>([]);

function settle(): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const next = [...new Set([...users.values()].flat())].sort().slice(0, most);
    if (next.join() !== watchedDevices.peek().join()) watchedDevices.value = next;
  }, settleMs);
}

/** Adds the values of these devices to the stream while the component is mounted. */
export function useWatched(uuids: readonly string[]): void {
  useEffect(() => {
    const user = Symbol('watching');
    users.set(user, uuids);
    settle();
    return () => {
      users.delete(user);
      settle();
    };
  }, [uuids.join()]);
}

/** A value as the stream sends it. */
export type LiveValue = Pick<LatestView, 'deviceAuthUuid' | 'sId' | 'val' | 'ts'>;

/** The current presence of a device that connected or disconnected. */
type LivePresence = StreamedDevice;

type StreamAsk = {
  /** Devices to stream values of; everything else is for all devices. */
  devices: readonly string[];
  /** The position to resume from; empty: start now. */
  lastEventId: string;
};

/** Values of one sense in a second: more than anybody can see. */
const maxHz = 2;

/** Everything over one connection. EventSource cannot send headers, so a URL with a ticket is created first. */
async function openStream({ devices, lastEventId }: StreamAsk): Promise<EventSource> {
  const values = devices.length > 0;
  const { url } = (
    await call<{ url: string }>('POST', '/v2/streams', {
      body: {
        kinds: ['events', 'alarms', 'devices', ...(values ? ['measurements'] : [])],
        filters: values ? { measurementDevices: devices, maxHz } : {},
        ...(lastEventId === '' ? {} : { lastEventId }),
      },
    })
  ).body;
  return new EventSource(url);
}

/** How many alarms are open, exactly. */
export const openAlarms = signal(0);

/** Counts them again, so that a person's action shows at once, even without the stream. */
export async function readOpenAlarms(): Promise<void> {
  const uuid = accountOf()?.accountAuthUuid;
  // The page that lists alarms shows the error.
  const answer = await listAlarms({ state: 'open', limit: 1 }).catch(() => null);
  // Somebody else may have signed in meanwhile.
  if (!answer || accountOf()?.accountAuthUuid !== uuid) return;
  openAlarms.value = answer.body.total;
}

/** A broken fleet changes many alarms at once: do not read again for each. */
const readSoon = throttle(() => void readOpenAlarms(), 1_000);

effect(() => {
  const uuid = accountOf()?.accountAuthUuid;
  openAlarms.value = 0;
  if (uuid === undefined) return undefined;
  void readOpenAlarms();
  return onStream(({ kind }) => {
    if (kind === 'alarm' || kind === 'started') readSoon();
  });
});
