import { useState } from 'preact/hooks';
import { previewAction } from '../../api/devices.ts';
import type { ActionPreview, DeviceAction } from '../../api/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Problem, say } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { Replaced } from '../fleet/act/profile-dialog.tsx';
import { begin } from '../fleet/jobs.tsx';
import { Tick } from './fields.tsx';
import { text } from './texts.ts';

type InstallProps = {
  /** The stored rule. */
  uuid: string;
  devices: readonly { uuid: string; name?: string | undefined }[];
  /** The device that is chosen when it opens. */
  first: string;
  onClose: () => void;
};

type Planned = { action: DeviceAction; preview: ActionPreview };

/** Installs a rule as the profile of devices; says before what it replaces. */
export function InstallDialog({ uuid, devices, first, onClose }: InstallProps) {
  const [chosen, setChosen] = useState<readonly string[]>(first === '' ? [] : [first]);
  const [planned, setPlanned] = useState<Planned | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const run = async (work: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    await work().catch(setError);
    setBusy(false);
  };
  const look = () =>
    run(async () => {
      const devicesOf = { deviceAuthUuids: [...chosen] };
      const action: DeviceAction = { action: 'profile', purposeUuids: [uuid], ...devicesOf };
      setPlanned({ action, preview: await previewAction(action) });
    });
  const install = () =>
    run(async () => {
      if (planned) await begin(planned.action);
      say(text('install.begun'));
      onClose();
    });
  const changing = planned?.preview.devices.filter(({ outcome }) => outcome === 'install').length;
  const all = devices.map((device) => device.uuid);
  const hasAll = all.every((each) => chosen.includes(each));
  return (
    <Dialog title={text('install.title')} onClose={onClose}>
      <div class="form">
        {planned ? (
          <Replaced preview={planned.preview} />
        ) : (
          <fieldset class="groups">
            <legend>{text('install.devices')}</legend>
            <Tick
              label={text('install.all')}
              checked={hasAll}
              onChange={() => setChosen(hasAll ? [] : all)}
            />
            {devices.map((device) => (
              <Tick
                key={device.uuid}
                label={device.name?.trim() || t('fleet.unnamed')}
                checked={chosen.includes(device.uuid)}
                onChange={(isChosen) =>
                  setChosen([
                    ...chosen.filter((each) => each !== device.uuid),
                    ...(isChosen ? [device.uuid] : []),
                  ])
                }
              />
            ))}
          </fieldset>
        )}
        <p class="fine">{text('install.hint')}</p>
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
