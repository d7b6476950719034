import { useEffect, useState } from 'preact/hooks';
import { now } from '../app/now.ts';
import { t } from '../text/t.ts';

export type Quiet = { untilTs: number; reason?: string };

const hourMs = 3_600_000;
const lengths = [1, 4, 24, 168] as const;

type QuietFieldsProps = { onChange: (quiet: Quiet) => void };

/** For how long nobody is told, and why. */
export function QuietFields({ onChange }: QuietFieldsProps) {
  const [hours, setHours] = useState<(typeof lengths)[number]>(1);
  const [reason, setReason] = useState('');
  useEffect(() => {
    const text = reason.trim();
    onChange({ untilTs: now() + hours * hourMs, ...(text === '' ? {} : { reason: text }) });
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
