import type { map as en } from '../en/map.ts';

export const map: Record<keyof typeof en, string> = {
  'map.whole': 'Alle Geräte',
  'map.devices.one': '{count} Gerät mit Position',
  'map.devices.other': '{count} Geräte mit Position',
  'map.here': '{count} Geräte an dieser Stelle',
  'map.inAlarm': '{what}, mit Alarm',
  'map.none': 'Noch kein Gerät hat eine Position gesendet',
  'map.noneHint': 'Hier erscheint jedes Gerät, das Breite und Länge sendet.',
  'map.cut': 'Nur die ersten 5.000 Geräte wurden durchsucht.',
};
