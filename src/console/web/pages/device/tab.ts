import type { DescribedDevice, Sense } from '../../api/types.ts';
import { hereWith } from '../../app/router.ts';

export type CurrentProfile = Extract<DescribedDevice['currentProfile'], { pId: string }>;

/** What each tab of a device is handed. */
export type TabProps = {
  uuid: string;
  configuration: DescribedDevice;
  senses: ReadonlyMap<string, Sense>;
  /** null: none is installed. */
  purposes: CurrentProfile | null;
};

/** Another tab of this device: the chart keeps its range; what another tab was at stays there. */
export const toTab = (tab: string): string => hereWith({ tab, cursor: '', sense: '' });
