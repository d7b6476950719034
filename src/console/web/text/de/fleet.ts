import type { fleet as en } from '../en/fleet.ts';

export const fleet: Record<keyof typeof en, string> = {
  'fleet.title': 'Geräte',
  'fleet.search': 'Name, Seriennummer oder Kennung suchen',
  'fleet.all': 'Alle',
  'fleet.inAlarm': 'Mit Alarm',
  'fleet.online': 'Online',
  'fleet.offline': 'Offline',
  'fleet.pending': 'Profil ausstehend',
  'fleet.filter': 'Welche Geräte',
  'fleet.name': 'Name',
  'fleet.state': 'Zustand',
  'fleet.values': 'Neueste Werte',
  'fleet.lastSeen': 'Zuletzt gesehen',
  'fleet.labels': 'Labels',
  'fleet.alarm': 'Alarm seit {time}',
  'fleet.unnamed': 'Gerät ohne Namen',
  'fleet.noMatch': 'Kein Gerät passt',
  'fleet.noMatchHint':
    'Versuchen Sie einen Teil des Namens, die Seriennummer oder den Anfang der Kennung.',
  'fleet.clear': 'Alle Geräte zeigen',
  'fleet.empty': 'Noch kein Gerät',
  'fleet.emptyHint':
    'Fügen Sie eines hinzu und sehen Sie den ersten Wert ankommen. Das dauert zwei Minuten.',
  'fleet.simulate': 'Oder probieren Sie es mit simulierten Geräten, in einem Terminal:',
  'fleet.sortBy': 'Nach {column} sortieren',
  'fleet.neverSeen': 'Nie verbunden',
  'status.online': 'Online',
  'status.offline': 'Offline',
  'status.never': 'Nie verbunden',
};
