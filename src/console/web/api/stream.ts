import { call } from './request.ts';
import type { LatestView } from './types.ts';

/** A value as it is streamed. */
export type LiveValue = Pick<LatestView, 'deviceAuthUuid' | 'sId' | 'val' | 'ts'>;

export type StreamAsk = {
  /** Whose values are carried; events and alarms are of all devices. */
  devices: readonly string[];
  /** Where another stream was; empty: from now on. */
  lastEventId: string;
};

/** Values of a sense in a second: more than anybody sees. */
const maxHz = 2;

/** Events, alarms and values over one connection. EventSource can send no header, so an address is made first. */
export async function openStream({ devices, lastEventId }: StreamAsk): Promise<EventSource> {
  const values = devices.length > 0;
  const { url } = (
    await call<{ url: string }>('POST', '/v2/streams', {
      body: {
        kinds: ['events', 'alarms', ...(values ? ['measurements'] : [])],
        filters: values ? { measurementDevices: devices, maxHz } : {},
        ...(lastEventId === '' ? {} : { lastEventId }),
      },
    })
  ).body;
  return new EventSource(url);
}
