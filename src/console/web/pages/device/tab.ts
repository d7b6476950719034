import type { DescribedDevice, Sense } from '../../api/types.ts';

export type CurrentProfile = Extract<DescribedDevice['currentProfile'], { pId: string }>;

/** What each tab of a device is handed. */
export type TabProps = {
  uuid: string;
  configuration: DescribedDevice;
  senses: ReadonlyMap<string, Sense>;
  /** null: none is installed. */
  purposes: CurrentProfile | null;
};
