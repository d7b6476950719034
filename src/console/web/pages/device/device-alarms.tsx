import { openList } from '../../app/open-alarms.ts';
import { AlarmCard } from '../alarms/alarm-card.tsx';

/** The open alarms of this device, above all else. */
export function DeviceAlarms({ uuid }: { uuid: string }) {
  const alarms = openList.value.filter(({ deviceAuthUuid }) => deviceAuthUuid === uuid);
  if (alarms.length === 0) return null;
  return (
    <ul class="alarms">
      {alarms.map((alarm) => (
        <AlarmCard key={alarm.alarmId} alarm={alarm} />
      ))}
    </ul>
  );
}
