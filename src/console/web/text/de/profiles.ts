import type { profiles as en } from '../en/profiles.ts';

export const profiles: Record<keyof typeof en, string> = {
  'profiles.none': 'Noch kein Gerät hat ein Profil',
  'profiles.pending': 'Antwort steht aus: {count}',
  'profiles.refused': 'abgelehnt: {count}',
  'profiles.at': 'Installiert: {time}',
  'profiles.between': 'Installiert von {first} bis {last}',
  'profiles.content': 'Inhalt',
  'labelLimits.title': 'Grenzen von Labels',
  'labelLimits.hint':
    'Ein Gerät mit einem dieser Labels erhält diese gespeicherte Aufgabe als Profil, sofern ihm niemand eigene Grenzen gegeben hat. Es zählt das erste Label in dieser Reihenfolge.',
  'labelLimits.of': 'Grenzen des Labels {label}',
  'labelLimits.gone': 'Eine gelöschte Aufgabe',
  'labelLimits.remove': 'Grenzen des Labels {label} entfernen',
  'labelLimits.add': 'Label hinzufügen',
};
