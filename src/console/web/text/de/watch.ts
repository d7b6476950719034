import type { watch as en } from '../en/watch.ts';

export const watch: Record<keyof typeof en, string> = {
  'watch.title': 'Alarme für dieses Gerät',
  'watch.back': 'Zurück zum Gerät',
  'watch.open': 'Alarme einrichten',
  'watch.below': 'unter',
  'watch.above': 'über',
  'watch.silent': 'Melden, wenn das Gerät nichts sendet',
  'watch.silent.never': 'Nie',
  'watch.silent.minutes': '{minutes} Minuten lang',
  'watch.silent.hours': '{hours} h lang',
  'watch.hint':
    'Ein Alarm öffnet sich, wenn ein Wert eine Grenze überschreitet oder unterschreitet, und endet, wenn der Wert wieder im Rahmen liegt. Leer bedeutet: keine Grenze.',
  'watch.save': 'Alarme speichern',
  'watch.saved': 'Gespeichert. Die Alarme gelten ab der nächsten Nachricht.',
  'watch.savedForNobody': 'Gespeichert. Legen Sie jetzt fest, wer benachrichtigt wird.',
  'watch.nothing':
    'Geben Sie mindestens eine Grenze ein, oder wählen Sie, wie lange das Gerät nichts senden darf.',
  'watch.replaces':
    'Das Profil dieses Geräts enthält mehr, als diese Seite anzeigen kann. Beim Speichern wird es ganz ersetzt.',
  'watch.replaceTitle': 'Das ganze Profil ersetzen?',
  'watch.replace': 'Profil ersetzen',
  'watch.replaceHint':
    'Damit entfallen diese Aufgaben mit allen Alarmen und Aktionen. Es bleiben nur die Alarme, die Sie hier gewählt haben.',
  'watch.purpose': 'Aufgabe {puId}',
  'watch.aboveName': '{name} über {value}',
  'watch.belowName': '{name} unter {value}',
  'watch.silentName': 'nichts empfangen',
  'watch.purposeName': 'Grenzen',
  'watch.stateName': 'überwacht',
  'watch.who': 'Wer benachrichtigt wird',
  'watch.nobody': 'Noch niemand. Fügen Sie eine E-Mail-Adresse hinzu, um Alarme zu erhalten.',
  'watch.unconfirmed':
    'Noch niemand: Keine Adresse ist bestätigt. Öffnen Sie den Link in der E-Mail.',
  'watch.addContact': 'E-Mail-Adresse hinzufügen',
  'watch.contacts': 'Kontakte',
};
