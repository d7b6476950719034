import type { DescribedDevice, Sense } from '../../api/types.ts';
import { hereWith } from '../../app/router.ts';

export type CurrentProfile = Extract<DescribedDevice['currentProfile'], { pId: string }>;

/** What each tab of a device receives. */
export type TabProps = {
  uuid: string;
  configuration: DescribedDevice;
  senses: ReadonlyMap<string, Sense>;
  /** null if none is installed. */
  purposes: CurrentProfile | null;
};

/** The URL of another tab of this device. The chart keeps its range; parameters of the current tab are removed. */
export const toTab = (tab: string): string => hereWith({ tab, cursor: '', sense: '' });
