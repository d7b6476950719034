import { useState } from 'preact/hooks';
import type { DeviceAction } from '../../api/types.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { say } from '../../parts/panel.tsx';
import { InstallForm } from '../fleet/act/install-form.tsx';
import { type Chosen, DevicesChoice } from './devices-choice.tsx';
import { text } from './texts.ts';

type InstallProps = {
  /** The stored rule. */
  uuid: string;
  /** The devices that are chosen when it opens. */
  first: readonly Chosen[];
  onClose: () => void;
};

/** Installs a rule as the profile of devices. */
export function InstallDialog({ uuid, first, onClose }: InstallProps) {
  const [chosen, setChosen] = useState(first);
  const deviceAuthUuids = chosen.map((each) => each.uuid);
  const action: DeviceAction = { action: 'profile', purposeUuids: [uuid], deviceAuthUuids };
  return (
    <Dialog title={text('install.title')} onClose={onClose}>
      <InstallForm
        action={chosen.length === 0 ? null : action}
        onBegun={() => say(text('install.begun'))}
        onClose={onClose}
      >
        <DevicesChoice legend={text('install.devices')} chosen={chosen} onChange={setChosen} />
        <p class="fine">{text('install.hint')}</p>
      </InstallForm>
    </Dialog>
  );
}
