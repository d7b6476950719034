import { useLatest } from '../../api/measurements.ts';
import type { ListedAlarm } from '../../api/types.ts';
import { AlarmCard } from './alarm-card.tsx';

/** Alarms of many devices (`hasDevice`), or of one. Their senses are asked for once. */
export function AlarmList({ alarms, hasDevice = false }: ListProps) {
  const uuids = [...new Set(alarms.map(({ deviceAuthUuid }) => deviceAuthUuid))];
  const { data } = useLatest(uuids);
  const latest = data && Map.groupBy(data, ({ deviceAuthUuid }) => deviceAuthUuid);
  return (
    <ul class="alarms">
      {alarms.map((alarm) => (
        <AlarmCard
          key={alarm.alarmId}
          alarm={alarm}
          hasDevice={hasDevice}
          latest={latest && (latest.get(alarm.deviceAuthUuid) ?? [])}
        />
      ))}
    </ul>
  );
}

type ListProps = { alarms: readonly ListedAlarm[]; hasDevice?: boolean };
