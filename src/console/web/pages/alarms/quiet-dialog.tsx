import { useState } from 'preact/hooks';
import type { ListedAlarm } from '../../api/types.ts';
import { now } from '../../app/now.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { t } from '../../text/t.ts';
import { textOf } from '../sign-in/credentials-form.tsx';

export type Quiet = { untilTs: number; reason?: string };

const hourMs = 3_600_000;
const lengths = [1, 4, 24, 168] as const;

type QuietProps = {
  what: 'snooze' | 'mute';
  alarm: ListedAlarm;
  onCancel: () => void;
  onQuiet: (quiet: Quiet) => void;
};

/** For how long nobody is told, and why. */
export function QuietDialog({ what, alarm, onCancel, onQuiet }: QuietProps) {
  const [hours, setHours] = useState<(typeof lengths)[number]>(1);
  const { eventName: name } = alarm;
  const device = alarm.deviceName || t('fleet.unnamed');
  const title =
    what === 'snooze' ? t('quiet.snoozeTitle', { name }) : t('quiet.muteTitle', { device });
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const reason = textOf(form, 'reason').trim();
    onQuiet({ untilTs: now() + hours * hourMs, ...(reason === '' ? {} : { reason }) });
  };
  return (
    <Dialog title={title} onClose={onCancel}>
      <form class="form" onSubmit={send}>
        <p class="fine">
          {what === 'snooze' ? t('quiet.snoozeHint', { device }) : t('quiet.muteHint')}
        </p>
        <fieldset class="choices">
          <legend>{t('quiet.for')}</legend>
          {lengths.map((each) => (
            <label key={each} class="choice">
              <input
                type="radio"
                name="hours"
                checked={hours === each}
                onChange={() => setHours(each)}
              />
              <span>{t(`quiet.${each}h`)}</span>
            </label>
          ))}
        </fieldset>
        <label class="field">
          <span>{t('quiet.reason')}</span>
          <input name="reason" maxLength={200} placeholder={t('quiet.reasonPlaceholder')} />
        </label>
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
