import type { watch as en } from '../en/watch.ts';

export const watch: Record<keyof typeof en, string> = {
  'watch.title': 'Alarme dieses Geräts',
  'watch.back': 'Zum Gerät',
  'watch.open': 'Alarme einrichten',
  'watch.below': 'unter',
  'watch.above': 'über',
  'watch.silent': 'Melden, wenn das Gerät nichts sendet',
  'watch.silent.never': 'Nie',
  'watch.silent.minutes': '{minutes} Minuten lang',
  'watch.silent.hours': '{hours} h lang',
  'watch.hint':
    'Ein Alarm beginnt, wenn ein Wert jenseits einer Grenze liegt, und endet, wenn er zurück ist. Leer: keine Grenze.',
  'watch.save': 'Alarme speichern',
  'watch.saved': 'Gespeichert. Die Alarme gelten ab der nächsten Nachricht.',
  'watch.savedForNobody': 'Gespeichert. Jetzt noch festlegen, wer benachrichtigt wird.',
  'watch.nothing':
    'Bitte mindestens eine Grenze eingeben oder wählen, wie lange das Gerät nichts senden darf.',
  'watch.replaces':
    'Dieses Gerät hat ein Profil, das mehr enthält, als diese Seite zeigen kann. Speichern ersetzt es ganz.',
  'watch.replaceTitle': 'Das ganze Profil ersetzen?',
  'watch.replace': 'Profil ersetzen',
  'watch.replaceHint':
    'Diese Aufgaben enden, mit allem, worauf sie achten und was sie tun. Es bleiben nur die Alarme, die Sie hier gewählt haben.',
  'watch.purpose': 'Aufgabe {puId}',
  'watch.aboveName': '{name} über {value}',
  'watch.belowName': '{name} unter {value}',
  'watch.silentName': 'nichts empfangen',
  'watch.purposeName': 'Grenzen',
  'watch.stateName': 'überwacht',
  'watch.who': 'Wer benachrichtigt wird',
  'watch.nobody':
    'Noch niemand. Fügen Sie eine E-Mail-Adresse hinzu, dann erreichen Alarme Sie dort.',
  'watch.unconfirmed':
    'Noch niemand: Keine Adresse ist bestätigt. Öffnen Sie den Link in der Mail.',
  'watch.addContact': 'E-Mail-Adresse hinzufügen',
  'watch.contacts': 'Kontakte',
};
