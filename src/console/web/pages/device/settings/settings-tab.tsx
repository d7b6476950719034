import { useState } from 'preact/hooks';
import { reload, useQuery } from '../../../api/cache.ts';
import { getDevice, removeDevice, saveLabels } from '../../../api/devices.ts';
import { navigate } from '../../../app/router.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Problem, say } from '../../../parts/panel.tsx';
import { t } from '../../../text/t.ts';
import type { TabProps } from '../tab.ts';
import { ConfigurationForm } from './configuration-form.tsx';

/** What a person can change about a device: its name and senses, its labels, and its removal. */
export function SettingsTab({ uuid, configuration }: TabProps) {
  return (
    <div class="tab-form">
      <ConfigurationForm key={uuid} uuid={uuid} configuration={configuration} />
      <LabelsForm uuid={uuid} />
      <RemoveDevice uuid={uuid} name={configuration.device.name ?? ''} />
    </div>
  );
}

/** Labels decide who is notified of the device, and filter the list. */
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
      say(t('account.saved'));
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

type RemoveProps = { uuid: string; name: string };

/** Removes a device with everything it measured, once its name has been typed. */
export function RemoveDevice({ uuid, name }: RemoveProps) {
  const [isAsked, setIsAsked] = useState(false);
  return (
    <div class="form">
      <h3>{t('settings.remove')}</h3>
      <p class="fine">{t('settings.removeHint')}</p>
      <button type="button" class="button button-bad" onClick={() => setIsAsked(true)}>
        {t('settings.remove')}
      </button>
      {isAsked && <RemoveDialog uuid={uuid} name={name} onCancel={() => setIsAsked(false)} />}
    </div>
  );
}

function RemoveDialog({ uuid, name, onCancel }: RemoveProps & { onCancel: () => void }) {
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<unknown>(null);
  // A device without a name is identified by the start of its uuid.
  const expected = name.trim() || uuid.slice(0, 8);
  const remove = async (event: SubmitEvent) => {
    event.preventDefault();
    try {
      await removeDevice(uuid);
      say(t('settings.removed', { name: expected }));
      navigate('');
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <Dialog title={t('settings.removeTitle', { name: expected })} onClose={onCancel}>
      <form class="form" onSubmit={(event) => void remove(event)}>
        <Problem error={error} />
        <p>{t('settings.removeWhat')}</p>
        <label class="field">
          <span>{t('settings.typeName', { name: expected })}</span>
          <input
            name="typed"
            value={typed}
            autocomplete="off"
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={onCancel}>
            {t('common.cancel')}
          </button>
          <button type="submit" class="button button-bad" disabled={typed.trim() !== expected}>
            {t('settings.remove')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
