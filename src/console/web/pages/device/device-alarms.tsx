import { openList } from '../../app/open-alarms.ts';
import { AlarmList } from '../alarms/alarm-list.tsx';

/** The open alarms of this device, above all else. */
export function DeviceAlarms({ uuid }: { uuid: string }) {
  const alarms = openList.value.filter(({ deviceAuthUuid }) => deviceAuthUuid === uuid);
  return alarms.length === 0 ? null : <AlarmList alarms={alarms} />;
}
