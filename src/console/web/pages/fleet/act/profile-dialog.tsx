import { useState } from 'preact/hooks';
import { useQuery } from '../../../api/cache.ts';
import { listPurposes } from '../../../api/devices.ts';
import type { DeviceAction } from '../../../api/types.ts';
import { Dialog } from '../../../parts/dialog.tsx';
import { Answered, Empty } from '../../../parts/panel.tsx';
import { count, t } from '../../../text/t.ts';
import { clearSelection, selection, toTarget } from '../fleet-table.tsx';
import { type ActionDialogProps, Affected } from './action-dialog.tsx';
import { InstallForm } from './install-form.tsx';

/** Installs purposes of the account as the profile of many devices. */
export function ProfileDialog({ number, onClose }: ActionDialogProps) {
  // What was selected when it opened.
  const [target] = useState(() => toTarget(selection.value));
  const query = useQuery('purposes', listPurposes);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const action: DeviceAction = { action: 'profile', purposeUuids: [...chosen], ...target };
  return (
    <Dialog
      title={t('act.profile.title', { devices: count('fleet.devices', number) })}
      onClose={onClose}
    >
      <Affected />
      <InstallForm
        action={chosen.length === 0 ? null : action}
        onBegun={clearSelection}
        onClose={onClose}
      >
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
      </InstallForm>
    </Dialog>
  );
}
