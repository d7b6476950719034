import type { ListedAlarm } from '../../api/types.ts';
import { queryOf, setQuery } from '../../app/router.ts';
import { Icon } from '../../parts/icon.tsx';
import { t } from '../../text/t.ts';

/** Of which devices: one that a link led to, or those with a label. */
export function AlarmFilters({ alarms }: { alarms: readonly ListedAlarm[] }) {
  const device = queryOf('device');
  const label = queryOf('label');
  if (device !== '')
    return <Only text={t('alarms.ofDevice', { device: nameOf(device, alarms) })} name="device" />;
  if (label !== '') return <Only text={t('alarms.ofLabel', { label })} name="label" />;
  return (
    <label class="search alarm-label">
      <span class="hidden">{t('alarms.label')}</span>
      <Icon name="search" />
      <input
        type="search"
        placeholder={t('alarms.label')}
        autocomplete="off"
        spellcheck={false}
        // The service compares whole labels: it is asked when the label is complete.
        onChange={({ currentTarget }) =>
          setQuery({ label: currentTarget.value.trim(), cursor: '' })
        }
      />
    </label>
  );
}

function nameOf(uuid: string, alarms: readonly ListedAlarm[]): string {
  return alarms.find(({ deviceAuthUuid }) => deviceAuthUuid === uuid)?.deviceName || uuid;
}

function Only({ text, name }: { text: string; name: 'device' | 'label' }) {
  return (
    <p class="only">
      <span>{text}</span>
      <button type="button" class="button" onClick={() => setQuery({ [name]: '', cursor: '' })}>
        {t('alarms.dropFilter')}
      </button>
    </p>
  );
}
