import { useState } from 'preact/hooks';
import { acknowledgeAlarm, closeAlarm, snoozeAlarm, unsnoozeAlarm } from '../../api/alarms.ts';
import { muteDevice, unmuteDevice } from '../../api/devices.ts';
import { reload } from '../../api/cache.ts';
import type { ListedAlarm } from '../../api/types.ts';
import { readOpenAlarms } from '../../app/open-alarms.ts';
import { Problem } from '../../parts/problem.tsx';
import { say } from '../../parts/toast.tsx';
import { t } from '../../text/t.ts';
import { QuietDialog, type Quiet } from './quiet-dialog.tsx';

type Act = 'acknowledge' | 'close' | 'snooze' | 'unsnooze' | 'mute' | 'unmute';

/** What a person can do about an alarm; the page shows at once what came of it. */
export function AlarmActions({ alarm }: { alarm: ListedAlarm }) {
  const [asking, setAsking] = useState<'snooze' | 'mute' | null>(null);
  const [error, setError] = useState<unknown>(null);
  const { alarmId, deviceAuthUuid: uuid, state, snoozed, muted } = alarm;
  const run = async (act: Act, work: () => Promise<unknown>) => {
    setError(null);
    setAsking(null);
    try {
      await work();
      say(t(`alarms.done.${act}`));
    } catch (thrown) {
      setError(thrown);
    }
    reload('alarms/');
    await readOpenAlarms();
  };
  const quiet = (body: Quiet) =>
    asking === 'snooze'
      ? run('snooze', () => snoozeAlarm(alarmId, body))
      : run('mute', () => muteDevice(uuid, body));
  return (
    <div class="alarm-actions">
      {state === 'open' && (
        <button
          type="button"
          class="button button-main"
          onClick={() => void run('acknowledge', () => acknowledgeAlarm(alarmId))}
        >
          {t('alarms.acknowledge')}
        </button>
      )}
      {snoozed ? (
        <button
          type="button"
          class="button"
          onClick={() => void run('unsnooze', () => unsnoozeAlarm(alarmId))}
        >
          {t('alarms.unsnooze')}
        </button>
      ) : (
        <button type="button" class="button" onClick={() => setAsking('snooze')}>
          {t('alarms.snooze')}
        </button>
      )}
      {muted ? (
        <button
          type="button"
          class="button"
          onClick={() => void run('unmute', () => unmuteDevice(uuid))}
        >
          {t('alarms.unmute')}
        </button>
      ) : (
        <button type="button" class="button" onClick={() => setAsking('mute')}>
          {t('alarms.mute')}
        </button>
      )}
      <button
        type="button"
        class="button"
        onClick={() => void run('close', () => closeAlarm(alarmId))}
      >
        {t('alarms.close')}
      </button>
      {error !== null && <Problem error={error} />}
      {asking !== null && (
        <QuietDialog
          what={asking}
          alarm={alarm}
          onCancel={() => setAsking(null)}
          onQuiet={(body) => void quiet(body)}
        />
      )}
    </div>
  );
}
