import { useEffect } from 'preact/hooks';
import { listAlarms } from '../../api/alarms.ts';
import { reload, useQuery } from '../../api/cache.ts';
import { openList } from '../../app/open-alarms.ts';
import { onStream } from '../../app/stream.ts';
import { AlarmList } from '../alarms/alarm-list.tsx';

const mostAcknowledged = 5;

/** The alarms of this device that last, above all else; those that nobody has acknowledged first. */
export function DeviceAlarms({ uuid }: { uuid: string }) {
  const key = `alarms/in-hand/${uuid}`;
  const filter = { state: 'acknowledged', device: uuid, limit: mostAcknowledged };
  const { data } = useQuery(key, (signal) => listAlarms(filter, signal));
  useEffect(
    () =>
      onStream((message) => {
        if (message.kind === 'alarm' && message.deviceAuthUuid === uuid) reload(key);
      }),
    [key],
  );
  const open = openList.value.filter(({ deviceAuthUuid }) => deviceAuthUuid === uuid);
  const ids = new Set(open.map(({ alarmId }) => alarmId));
  const inHand = (data?.body.alarms ?? []).filter(({ alarmId }) => !ids.has(alarmId));
  const alarms = [...open, ...inHand];
  return alarms.length === 0 ? null : <AlarmList alarms={alarms} />;
}
