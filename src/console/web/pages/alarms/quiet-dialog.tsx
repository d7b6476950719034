import { useState } from 'preact/hooks';
import type { ListedAlarm } from '../../api/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import {
  QuietFields,
  quietFromNow,
  type AskedQuiet,
  type Quiet,
} from '../../parts/quiet-fields.tsx';
import { t } from '../../text/t.ts';

type QuietProps = {
  what: 'snooze' | 'mute';
  alarm: ListedAlarm;
  onCancel: () => void;
  onQuiet: (quiet: Quiet) => void;
};

/** For how long nobody is told, and why. */
export function QuietDialog({ what, alarm, onCancel, onQuiet }: QuietProps) {
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
