import { computed, effect, signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { reload } from '../api/cache.ts';
import { listAlarms } from '../api/events.ts';
import { ApiError, call } from '../api/request.ts';
import type { EventView, LatestView, ListedAlarm, StreamedDevice } from '../api/types.ts';
import { now } from './now.ts';
import { accountOf } from './session.ts';
import { createBatch, throttle } from './throttle.ts';

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

/** As many as one stream can name. */
const most = 500;
/** A page that goes and the one that comes make one change. */
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

/** Has the stream carry the values of these devices while the component is there. */
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

/** A value as it is streamed. */
export type LiveValue = Pick<LatestView, 'deviceAuthUuid' | 'sId' | 'val' | 'ts'>;

/** A device that connected or left, as it stands now. */
type LivePresence = StreamedDevice;

type StreamAsk = {
  /** Whose values are carried; the rest is of all devices. */
  devices: readonly string[];
  /** Where another stream was; empty: from now on. */
  lastEventId: string;
};

/** Values of a sense in a second: more than anybody sees. */
const maxHz = 2;

/** Events, alarms, who is there, and values over one connection. EventSource can send no header, so an address is made first. */
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

/** The newest open alarms, at most 100. */
export const openList = signal<ListedAlarm[]>([]);

export const openAlarms = computed(() => openList.value.length);

/** Reads them again: what a person did is seen at once, whatever the stream does. */
export async function readOpenAlarms(): Promise<void> {
  const uuid = accountOf()?.accountAuthUuid;
  // The page that shows alarms says what went wrong.
  const answer = await listAlarms({ state: 'open', limit: 100 }).catch(() => null);
  // Of somebody who has left meanwhile nothing is kept.
  if (answer && accountOf()?.accountAuthUuid === uuid) openList.value = answer.body.alarms;
}

/** A broken fleet changes many alarms at once: they are not read for each. */
const readSoon = throttle(() => void readOpenAlarms(), 1_000);

effect(() => {
  const uuid = accountOf()?.accountAuthUuid;
  openList.value = [];
  if (uuid === undefined) return undefined;
  void readOpenAlarms();
  return onStream(({ kind }) => {
    if (kind === 'alarm' || kind === 'started') readSoon();
  });
});
