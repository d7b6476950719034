import { useState } from 'preact/hooks';
import { reload } from '../../api/cache.ts';
import { unmuteDevice, type ListedDevice } from '../../api/devices.ts';
import { readOpenAlarms } from '../../app/open-alarms.ts';
import { Problem } from '../../parts/problem.tsx';
import { Muted } from '../../parts/status.tsx';
import { say } from '../../parts/toast.tsx';
import { t } from '../../text/t.ts';

/** That nobody is told of a device, until when and why; and what ends it. */
export function Quiet({ device }: { device: ListedDevice }) {
  const [error, setError] = useState<unknown>(null);
  const end = async () => {
    setError(null);
    try {
      await unmuteDevice(device.uuid);
      say(t('alarms.done.unmute'));
      reload(`device/${device.uuid}`);
      reload('alarms/');
      await readOpenAlarms();
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <>
      <Muted {...device} />
      <button type="button" class="link" onClick={() => void end()}>
        {t('alarms.unmute')}
      </button>
      {error !== null && <Problem error={error} />}
    </>
  );
}
