import { useState } from 'preact/hooks';
import { removeDevice } from '../../../api/device.ts';
import { navigate } from '../../../app/router.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Problem } from '../../../parts/problem.tsx';
import { say } from '../../../parts/toast.tsx';
import { t } from '../../../text/t.ts';

type RemoveProps = { uuid: string; name: string };

/** The end of a device, with all that it measured: its name has to be typed. */
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
  // A device without a name is named by how its identifier begins.
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
