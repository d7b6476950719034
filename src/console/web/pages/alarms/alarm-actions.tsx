import { useState } from 'preact/hooks';
import { reload } from '../../api/cache.ts';
import { muteDevice, unmuteDevice } from '../../api/devices.ts';
import { acknowledgeAlarm, closeAlarm, snoozeAlarm, unsnoozeAlarm } from '../../api/events.ts';
import type { LatestView, ListedAlarm } from '../../api/types.ts';
import { readOpenAlarms } from '../../app/stream.ts';
import { Confirm, Dialog } from '../../parts/dialog.tsx';
import { type AskedQuiet, type Quiet, QuietFields, quietFromNow } from '../../parts/form.tsx';
import { Problem, say } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { whyOpen } from './about.ts';

type Act = 'acknowledge' | 'close' | 'snooze' | 'unsnooze' | 'mute' | 'unmute';

type ActionsProps = {
  alarm: ListedAlarm;
  /** The element that says which alarm it is; a screen reader reads it with each button. */
  describedBy: string;
  latest: readonly LatestView[] | undefined;
};

/** What a person can do about an alarm; the page shows the result at once. */
export function AlarmActions({ alarm, describedBy, latest }: ActionsProps) {
  const [asking, setAsking] = useState<'snooze' | 'mute' | 'close' | null>(null);
  const why = whyOpen(alarm, latest);
  const close = () => run('close', () => closeAlarm(alarmId));
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
      // The button that ends a snooze takes the place of the one that began it, so it keeps the focus.
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
      {button('close', () => (why === '' ? void close() : setAsking('close')))}
      {error !== null && <Problem error={error} />}
      {asking === 'close' && (
        <Confirm
          title={t('alarms.closeTitle')}
          action={t('alarms.closeAnyway')}
          onCancel={() => setAsking(null)}
          onConfirm={close}
        >
          <p>{why}</p>
          <p class="fine">{t('alarms.closeHint')}</p>
        </Confirm>
      )}
      {(asking === 'snooze' || asking === 'mute') && (
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

type QuietProps = {
  what: 'snooze' | 'mute';
  alarm: ListedAlarm;
  onCancel: () => void;
  onQuiet: (quiet: Quiet) => void;
};

/** For how long notifications are suppressed, and why. */
function QuietDialog({ what, alarm, onCancel, onQuiet }: QuietProps) {
  const [quiet, setQuiet] = useState<AskedQuiet>();
  const { eventName: name } = alarm;
  const device = alarm.deviceName || t('fleet.unnamed');
  const title =
    what === 'snooze' ? t('quiet.snoozeTitle', { name }) : t('quiet.muteTitle', { device });
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    if (quiet) onQuiet(quietFromNow(quiet));
  };
  return (
    <Dialog title={title} onClose={onCancel}>
      <form class="form" onSubmit={send}>
        <p class="fine">
          {what === 'snooze' ? t('quiet.snoozeHint', { device }) : t('quiet.muteHint')}
        </p>
        <QuietFields onChange={setQuiet} />
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onCancel}>
            {t('common.cancel')}
          </button>
          <button type="submit" class="button button-main">
            {t(what === 'snooze' ? 'alarms.snooze' : 'alarms.mute')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
