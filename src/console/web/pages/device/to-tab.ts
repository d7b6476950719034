import { hereWith } from '../../app/router.ts';

/** Another tab of this device: the chart keeps its range; what another tab was at stays there. */
export const toTab = (tab: string): string => hereWith({ tab, cursor: '', sense: '' });
