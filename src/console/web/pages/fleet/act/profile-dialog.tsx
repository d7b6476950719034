import { useState } from 'preact/hooks';
import { useQuery } from '../../../api/cache.ts';
import { listPurposes, previewAction } from '../../../api/devices.ts';
import type { ActionPreview, DeviceAction } from '../../../api/types.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Answered, Empty, Problem } from '../../../parts/panel.tsx';
import { count, t } from '../../../text/t.ts';
import { clearSelection, selection, toTarget } from '../fleet-table.tsx';
import { begin } from '../jobs.tsx';
import { type ActionDialogProps, Affected } from './action-dialog.tsx';

type Planned = { action: DeviceAction; preview: ActionPreview };

/** Installs purposes of the account as the profile of many devices; says before what they replace. */
export function ProfileDialog({ number, onClose }: ActionDialogProps) {
  // What was selected when it opened.
  const [target] = useState(() => toTarget(selection.value));
  const query = useQuery('purposes', listPurposes);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const run = async (work: () => Promise<void>) => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    await work().catch(setError);
    setBusy(false);
  };
  const look = () =>
    run(async () => {
      const action: DeviceAction = { action: 'profile', purposeUuids: [...chosen], ...target };
      setPlanned({ action, preview: await previewAction(action) });
    });
  const install = () =>
    run(async () => {
      if (planned) await begin(planned.action);
      onClose();
      clearSelection();
    });
  const changing = planned?.preview.devices.filter(({ outcome }) => outcome === 'install').length;
  return (
    <Dialog
      title={t('act.profile.title', { devices: count('fleet.devices', number) })}
      onClose={onClose}
    >
      <div class="form">
        <Affected />
        {planned ? (
          <Replaced preview={planned.preview} />
        ) : (
          <Answered query={query} lines={3}>
            {(purposes) =>
              purposes.length === 0 ? (
                <Empty icon="pulse" title={t('install.none')} hint={t('install.noneHint')} />
              ) : (
                <fieldset class="groups">
                  <legend>{t('install.which')}</legend>
                  {purposes.map(({ uuid, name }) => (
                    <label key={uuid} class="check">
                      <input
                        type="checkbox"
                        checked={chosen.includes(uuid)}
                        onChange={({ currentTarget }) =>
                          setChosen([
                            ...chosen.filter((each) => each !== uuid),
                            ...(currentTarget.checked ? [uuid] : []),
                          ])
                        }
                      />
                      <span>{name || t('profile.unnamed')}</span>
                    </label>
                  ))}
                </fieldset>
              )
            }
          </Answered>
        )}
        {error !== null && <Problem error={error} />}
        <div class="dialog-buttons">
          <button type="button" class="button" onClick={planned ? () => setPlanned(null) : onClose}>
            {t(planned ? 'limits.back' : 'common.cancel')}
          </button>
          <button
            type="button"
            class="button button-main"
            disabled={isBusy || chosen.length === 0 || changing === 0}
            onClick={() => void (planned ? install() : look())}
          >
            {t(planned ? 'act.profile.do' : 'limits.next')}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

/** For each profile that the devices have: what goes, comes and stays. */
export function Replaced({ preview: { profiles, devices } }: { preview: ActionPreview }) {
  const isSame = (place: number) =>
    devices.some(({ profile, outcome }) => profile === place && outcome === 'unchanged');
  const names = (some: readonly { name: string; puId: number }[] = []) =>
    some.map(({ name, puId }) => name || t('watch.purpose', { puId })).join(', ');
  return (
    <>
      <ul class="limit-changes">
        {profiles.map(({ pId, devices: number, goes, comes, stays }, place) => (
          <li key={place}>
            <strong>{count('fleet.devices', number)}</strong>
            {' – '}
            {isSame(place)
              ? t('install.same')
              : [
                  pId === null && t('limits.noProfile'),
                  goes?.length && t('install.goes', { names: names(goes) }),
                  stays?.length && t('install.stays', { names: names(stays) }),
                  comes?.length && t('install.comes', { names: names(comes) }),
                ]
                  .filter(Boolean)
                  .join(' ')}
          </li>
        ))}
      </ul>
      <p class="fine">{t('limits.hint')}</p>
    </>
  );
}
