import { useState } from 'preact/hooks';
import { acknowledgeAlarm, closeAlarm, snoozeAlarm, unsnoozeAlarm } from '../../api/alarms.ts';
import { muteDevice, unmuteDevice } from '../../api/devices.ts';
import { reload } from '../../api/cache.ts';
import type { ListedAlarm } from '../../api/types.ts';
import { readOpenAlarms } from '../../app/open-alarms.ts';
import { Problem } from '../../parts/problem.tsx';
import { say } from '../../parts/toast.tsx';
import { t } from '../../text/t.ts';
import type { Quiet } from '../../parts/quiet-fields.tsx';
import { QuietDialog } from './quiet-dialog.tsx';

type Act = 'acknowledge' | 'close' | 'snooze' | 'unsnooze' | 'mute' | 'unmute';

type ActionsProps = {
  alarm: ListedAlarm;
  /** What says which alarm: a screen reader hears it with each button. */
  describedBy: string;
};

/** What a person can do about an alarm; the page shows at once what came of it. */
export function AlarmActions({ alarm, describedBy }: ActionsProps) {
  const [asking, setAsking] = useState<'snooze' | 'mute' | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const { alarmId, deviceAuthUuid: uuid, state, snoozed, muted } = alarm;
  const run = async (act: Act, work: () => Promise<unknown>) => {
    if (isBusy) return;
    setError(null);
    setAsking(null);
    setBusy(true);
    try {
      await work();
      say(t(`alarms.done.${act}`));
    } catch (thrown) {
      setError(thrown);
    }
    setBusy(false);
    reload('alarms/');
    reload(`device/${uuid}`);
    await readOpenAlarms();
  };
  const quiet = (body: Quiet) =>
    asking === 'snooze'
      ? run('snooze', () => snoozeAlarm(alarmId, body))
      : run('mute', () => muteDevice(uuid, body));
  const button = (act: Act, onClick: () => void) => (
    <button
      // What ends a snooze stands where it began: the focus stays on it.
      key={act.replace('un', '')}
      type="button"
      class={act === 'acknowledge' ? 'button button-soft' : 'button'}
      aria-describedby={describedBy}
      aria-disabled={isBusy}
      onClick={onClick}
    >
      {t(`alarms.${act}`)}
    </button>
  );
  return (
    <div class="alarm-actions">
      {state === 'open' &&
        button('acknowledge', () => void run('acknowledge', () => acknowledgeAlarm(alarmId)))}
      {snoozed
        ? button('unsnooze', () => void run('unsnooze', () => unsnoozeAlarm(alarmId)))
        : button('snooze', () => setAsking('snooze'))}
      {muted
        ? button('unmute', () => void run('unmute', () => unmuteDevice(uuid)))
        : button('mute', () => setAsking('mute'))}
      {button('close', () => void run('close', () => closeAlarm(alarmId)))}
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
