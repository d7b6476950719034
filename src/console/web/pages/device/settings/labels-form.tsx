import { useState } from 'preact/hooks';
import { reload, useQuery } from '../../../api/cache.ts';
import { getDevice, saveLabels } from '../../../api/device.ts';
import { Problem } from '../../../parts/problem.tsx';
import { say } from '../../../parts/toast.tsx';
import { t } from '../../../text/t.ts';

/** Labels say who is told of the device, and find it in the list. */
export function LabelsForm({ uuid }: { uuid: string }) {
  const { data } = useQuery(`device/${uuid}`, (signal) => getDevice(uuid, signal));
  const [typed, setTyped] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const text = typed ?? data?.device.labels.join(', ') ?? '';
  const save = async (event: SubmitEvent) => {
    event.preventDefault();
    const labels = text.split(',').map((label) => label.trim());
    try {
      await saveLabels(uuid, [...new Set(labels.filter((label) => label !== ''))]);
      setError(null);
      setTyped(null);
      say(t('settings.saved'));
      reload(`device/${uuid}`);
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <form class="form" onSubmit={(event) => void save(event)}>
      <h3>{t('fleet.labels')}</h3>
      {error !== null && <Problem error={error} />}
      <label class="field narrow">
        <span>{t('settings.labels')}</span>
        <input
          name="labels"
          value={text}
          autocomplete="off"
          placeholder={t('settings.labelsPlaceholder')}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        />
      </label>
      <p class="fine">{t('settings.labelsHint')}</p>
      <button type="submit" class="button" disabled={typed === null}>
        {t('settings.saveLabels')}
      </button>
    </form>
  );
}
