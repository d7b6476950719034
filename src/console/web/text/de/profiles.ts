import type { profiles as en } from '../en/profiles.ts';

export const profiles: Record<keyof typeof en, string> = {
  'profiles.none': 'Noch kein Gerät hat ein Profil',
  'profiles.pending': 'Antwort steht aus: {count}',
  'profiles.refused': 'abgelehnt: {count}',
  'profiles.at': 'Installiert: {time}',
  'profiles.between': 'Installiert von {first} bis {last}',
  'profiles.content': 'Inhalt',
};
