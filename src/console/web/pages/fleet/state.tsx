import type { ListedDevice } from '../../api/devices.ts';
import { Icon } from '../../parts/icon.tsx';
import { Link } from '../../parts/link.tsx';
import { Muted, Status } from '../../parts/status.tsx';
import { formatFullTime, formatNumber, formatTime } from '../../text/format.ts';
import { t } from '../../text/t.ts';

/** What is wrong with a device, first; that it is connected only where nothing is. */
export function State({ device }: { device: ListedDevice }) {
  const { uuid, alarmSinceTs, openAlarms = 1, refusedTs, connected } = device;
  const isWrong = alarmSinceTs !== undefined || refusedTs !== undefined;
  return (
    <div class="states">
      {alarmSinceTs !== undefined && (
        <span class="status status-alarm" title={formatFullTime(alarmSinceTs)}>
          <Icon name="warn" />
          {openAlarms > 1
            ? t('fleet.alarms', { count: formatNumber(openAlarms), time: formatTime(alarmSinceTs) })
            : t('fleet.alarm', { time: formatTime(alarmSinceTs) })}
        </span>
      )}
      {refusedTs !== undefined && (
        <Link to={`devices/${uuid}?tab=rejections`} class="status status-refused">
          {t('fleet.refusedAt', { time: formatTime(refusedTs) })}
        </Link>
      )}
      <Muted {...device} />
      {!(isWrong && connected) && <Status {...device} />}
    </div>
  );
}
