import type { IconName } from '../../parts/icon.tsx';

/** The parts of the account page, by their place in the URL: /console/account/contacts. */
export const sections = [
  'profile',
  'contacts',
  'access',
  'sessions',
  'keys',
  'usage',
  'audit',
  'delete',
] as const;
export type Section = (typeof sections)[number];

export const icons: Record<Section, IconName> = {
  profile: 'person',
  contacts: 'alarm',
  access: 'lock',
  sessions: 'devices',
  keys: 'key',
  usage: 'gauge',
  audit: 'list',
  delete: 'bin',
};
