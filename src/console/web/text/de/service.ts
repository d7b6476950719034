import type { ErrorCode, RejectionReason } from '../../api/types.ts';

/** What a device sent that was refused or remarked on, by its reason. `{name}`: of the member it is about. */
export const rejections: Record<RejectionReason, string> = {
  'invalid-json': 'Die Nachricht ist kein JSON.',
  'invalid-payload': 'Eine Angabe fehlt oder ist falsch: {name}',
  'unknown-topic': 'Dieses Topic gibt es nicht.',
  'foreign-topic': 'Das Gerät sendete an ein Topic, das nicht seines ist, und wurde getrennt.',
  'unknown-sense': 'Die Konfiguration hat diesen Sensor nicht.',
  'out-of-range': 'Ein Wert liegt außerhalb dessen, was erlaubt ist.',
  'future-timestamp': 'Ihre Zeit ist noch nicht gekommen.',
  'expired-timestamp': 'Ihre Zeit liegt vor allem, was aufgehoben wird.',
  'unknown-state': 'Das Profil des Geräts hat diesen Zustand nicht.',
  'unknown-profile': 'Das Gerät nennt ein Profil, auf dessen Antwort niemand wartet.',
  'unknown-member': 'Die Angabe „{name}“ ist unbekannt und hat keine Wirkung.',
  'too-many-connects': 'Das Gerät verbindet sich immer wieder.',
  'too-many-connections': 'Das Konto hat alle Verbindungen, die es haben darf.',
  'session-taken-over':
    'Die Sitzung wurde zweimal in einer Minute übernommen: die Verbindung bricht oft ab, oder zwei Programme melden sich mit derselben Kennung an.',
  'message-not-acknowledged':
    'Das Gerät hat eine Nachricht nicht bestätigt (PUBACK): die Verbindung wurde geschlossen.',
  'packet-too-large':
    'Eine Nachricht an das Gerät wurde nicht gesendet: sie ist größer, als es annimmt.',
  'quota-exceeded':
    'Der Speicher des Kontos ist voll: was seine Geräte senden, muss warten, bis Platz ist.',
  unstorable: 'Das ließ sich nicht speichern.',
  'events-not-recorded':
    'Das Konto hat alle Ereignisse, die es haben darf: weitere werden nicht aufgezeichnet.',
  'more-of-message': 'Weiteres aus derselben Nachricht',
  'more-of-minute': 'Weiteres aus derselben Minute',
};

/** Why the service did not do what was asked, by the code of the problem. */
export const problems: Record<ErrorCode, string> = {
  'invalid-input': 'Eine Angabe ist falsch.',
  unauthenticated: 'Die Anmeldung gilt nicht oder nicht mehr.',
  forbidden: 'Das ist nicht erlaubt.',
  'account-disabled': 'Das Konto ist gesperrt. Fragen Sie, wer diesen Dienst betreibt.',
  'quota-exceeded': 'Das ist mehr, als das Konto haben darf.',
  'not-found': 'Das gibt es nicht (mehr).',
  conflict: 'Etwas anderes steht dem im Weg. Laden Sie die Seite neu.',
  'key-reused': 'Diese Anfrage wurde schon mit anderem Inhalt gestellt.',
  'too-many-requests': 'Zu viele Anfragen in kurzer Zeit.',
  'too-slow': 'Die Anfrage kam zu langsam an.',
  'unsupported-type': 'Die Anfrage hat eine Form, die der Dienst nicht liest.',
  unavailable: 'Der Dienst kann das gerade nicht. Versuchen Sie es gleich noch einmal.',
  'device-gone': 'Dieses Gerät gibt es nicht mehr.',
};
