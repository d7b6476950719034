import { QuietFields } from '../../../parts/quiet-fields.tsx';
import { t } from '../../../text/t.ts';
import type { FieldsProps } from './asked.ts';

/** For how long nobody is told of the chosen devices. */
export function MuteFields({ onChange }: FieldsProps) {
  return (
    <>
      <p class="fine">{t('act.mute.hint')}</p>
      <QuietFields onChange={onChange} />
    </>
  );
}
