import type { ErrorCode, RejectionReason } from '../../api/types.ts';

/** Rejections and remarks about what a device sent, by reason. `{name}`: the member concerned. */
export const rejections: Record<RejectionReason, string> = {
  'invalid-json': 'Die Nachricht ist kein JSON.',
  'invalid-payload': 'Eine Angabe fehlt oder ist falsch: {name}',
  'unknown-topic': 'Dieses Topic gibt es nicht.',
  'foreign-topic': 'Das Gerät hat an ein Topic gesendet, das ihm nicht gehört, und wurde getrennt.',
  'unknown-sense': 'Die Konfiguration hat diesen Sensor nicht.',
  'out-of-range': 'Ein Wert liegt außerhalb des erlaubten Bereichs.',
  'future-timestamp': 'Die Zeit der Nachricht liegt in der Zukunft.',
  'expired-timestamp': 'Die Zeit der Nachricht ist älter als der aufbewahrte Verlauf.',
  'unknown-state': 'Das Profil des Geräts hat diesen Zustand nicht.',
  'unknown-profile': 'Das Gerät antwortet auf ein Profil, zu dem keine Antwort aussteht.',
  'unknown-command': 'Das Gerät antwortet auf einen Befehl, den es nicht bekommen hat.',
  'unknown-member': 'Die Angabe „{name}“ ist unbekannt und hat keine Wirkung.',
  'too-many-connects': 'Das Gerät verbindet sich zu oft neu.',
  'too-many-connections': 'Das Konto hat die Höchstzahl seiner Verbindungen erreicht.',
  'session-taken-over':
    'Die Sitzung wurde zweimal in einer Minute übernommen: Entweder bricht die Verbindung oft ab, oder zwei Programme melden sich mit derselben Kennung an.',
  'message-not-acknowledged':
    'Das Gerät hat eine Nachricht nicht bestätigt (PUBACK). Die Verbindung wurde geschlossen.',
  'packet-too-large':
    'Eine Nachricht an das Gerät wurde nicht gesendet: Sie ist größer, als das Gerät annimmt.',
  'quota-exceeded':
    'Der Speicher des Kontos ist voll. Die Nachrichten seiner Geräte müssen warten, bis wieder Platz ist.',
  unstorable: 'Die Nachricht ließ sich nicht speichern.',
  'events-not-recorded':
    'Das Konto hat sein Kontingent an Ereignissen verbraucht. Weitere werden nicht aufgezeichnet.',
  'more-of-message': 'Weiteres aus derselben Nachricht',
  'more-of-minute': 'Weiteres aus derselben Minute',
};

/** Why the service refused a request, by the code of the problem. */
export const problems: Record<ErrorCode, string> = {
  'invalid-input': 'Eine Angabe ist ungültig.',
  unauthenticated: 'Die Anmeldung ist ungültig oder abgelaufen.',
  forbidden: 'Das ist nicht erlaubt.',
  'account-disabled': 'Das Konto ist gesperrt. Fragen Sie den Betreiber dieses Dienstes.',
  'quota-exceeded': 'Das Kontingent des Kontos reicht dafür nicht.',
  'not-found': 'Das gibt es nicht oder nicht mehr.',
  conflict: 'Das widerspricht dem aktuellen Stand. Laden Sie die Seite neu.',
  'condition-holds': 'Die Bedingung des Alarms gilt noch.',
  'precondition-failed': 'Das hat inzwischen jemand anders geändert. Bitte neu laden.',
  'key-reused': 'Diese Anfrage wurde bereits mit anderem Inhalt gestellt.',
  'too-many-requests': 'Zu viele Anfragen in kurzer Zeit.',
  'too-slow': 'Die Anfrage wurde zu langsam übertragen.',
  'unsupported-type': 'Das Format der Anfrage wird nicht unterstützt.',
  unavailable: 'Der Dienst kann das zurzeit nicht ausführen. Versuchen Sie es gleich noch einmal.',
  'device-gone': 'Dieses Gerät gibt es nicht mehr.',
};
