import { useState } from 'preact/hooks';
import { previewAction } from '../../api/devices.ts';
import type { ActionPreview, DeviceAction } from '../../api/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Problem, say } from '../../parts/panel.tsx';
import { t } from '../../text/t.ts';
import { Replaced } from '../fleet/act/profile-dialog.tsx';
import { begin } from '../fleet/jobs.tsx';
import { type Chosen, DevicesChoice } from './devices-choice.tsx';
import { text } from './texts.ts';

type InstallProps = {
  /** The stored rule. */
  uuid: string;
  /** The devices that are chosen when it opens. */
  first: readonly Chosen[];
  onClose: () => void;
};

type Planned = { action: DeviceAction; preview: ActionPreview };

/** Installs a rule as the profile of devices; says before what it replaces. */
export function InstallDialog({ uuid, first, onClose }: InstallProps) {
  const [chosen, setChosen] = useState(first);
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
      const devicesOf = { deviceAuthUuids: chosen.map((each) => each.uuid) };
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
  return (
    <Dialog title={text('install.title')} onClose={onClose}>
      <div class="form">
        {planned ? (
          <Replaced preview={planned.preview} />
        ) : (
          <DevicesChoice legend={text('install.devices')} chosen={chosen} onChange={setChosen} />
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
            aria-busy={isBusy}
            disabled={chosen.length === 0 || changing === 0}
            onClick={() => void (planned ? install() : look())}
          >
            {t(planned ? 'act.profile.do' : 'limits.next')}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
