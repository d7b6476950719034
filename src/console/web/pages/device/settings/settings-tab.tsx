import type { TabProps } from '../tab.ts';
import { ConfigurationForm } from './configuration-form.tsx';
import { LabelsForm } from './labels-form.tsx';
import { RemoveDevice } from './remove-device.tsx';

/** What a person decides of a device: what it is called and measures, its labels, its end. */
export function SettingsTab({ uuid, configuration }: TabProps) {
  return (
    <div class="tab-form">
      <ConfigurationForm key={uuid} uuid={uuid} configuration={configuration} />
      <LabelsForm uuid={uuid} />
      <RemoveDevice uuid={uuid} name={configuration.device.name ?? ''} />
    </div>
  );
}
