import { call } from './request.ts';
import type { LatestView, StreamedDevice } from './types.ts';

/** A value as it is streamed. */
export type LiveValue = Pick<LatestView, 'deviceAuthUuid' | 'sId' | 'val' | 'ts'>;

/** A device that connected or left, as it stands now. */
export type LivePresence = StreamedDevice;

export type StreamAsk = {
  /** Whose values are carried; the rest is of all devices. */
  devices: readonly string[];
  /** Where another stream was; empty: from now on. */
  lastEventId: string;
};

/** Values of a sense in a second: more than anybody sees. */
const maxHz = 2;

/** Events, alarms, who is there, and values over one connection. EventSource can send no header, so an address is made first. */
export async function openStream({ devices, lastEventId }: StreamAsk): Promise<EventSource> {
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
