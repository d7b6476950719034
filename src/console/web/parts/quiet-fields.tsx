import { useLayoutEffect, useState } from 'preact/hooks';
import { now } from '../app/now.ts';
import { t } from '../text/t.ts';

/** As it is chosen: it begins when it is sent, however long the dialog was open. */
export type AskedQuiet = { forMs: number; reason?: string };
export type Quiet = { untilTs: number; reason?: string };

/** As it is sent. */
export const quietFromNow = ({ forMs, ...rest }: AskedQuiet): Quiet => ({
  ...rest,
  untilTs: now() + forMs,
});

const hourMs = 3_600_000;
const lengths = [1, 4, 24, 168] as const;

type QuietFieldsProps = { onChange: (quiet: AskedQuiet) => void };

/** For how long nobody is told, and why. */
export function QuietFields({ onChange }: QuietFieldsProps) {
  const [hours, setHours] = useState<(typeof lengths)[number]>(1);
  const [reason, setReason] = useState('');
  // Before the next key: Enter right after the last letter sends that too.
  useLayoutEffect(() => {
    const text = reason.trim();
    onChange({ forMs: hours * hourMs, ...(text === '' ? {} : { reason: text }) });
  }, [hours, reason]);
  return (
    <>
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
        <input
          name="reason"
          value={reason}
          maxLength={200}
          placeholder={t('quiet.reasonPlaceholder')}
          onInput={({ currentTarget }) => setReason(currentTarget.value)}
        />
      </label>
    </>
  );
}
