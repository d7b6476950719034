// 3GPP TS 23.038: the default alphabet, and what takes two places in it.
const basic =
  '@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !"#¤%&\'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§' +
  '¿abcdefghijklmnopqrstuvwxyzäöñüà';
const extended = '^{}\\[~]|€\f';

/** In how many parts an SMS goes out: 160 characters of the default alphabet, or 70; in several, 153 or 67. */
export function countSegments(text: string): number {
  let places = 0;
  for (const character of text) {
    if (basic.includes(character)) places += 1;
    else if (extended.includes(character)) places += 2;
    else return parts(text.length, 70, 67);
  }
  return parts(places, 160, 153);
}

const parts = (length: number, alone: number, together: number) =>
  length <= alone ? 1 : Math.ceil(length / together);

/** An SMS is kept to so many, where its own text is not longer. */
export const maxSegments = 2;

/**
 * An SMS as it is sent: its text, with the device's name before it where it is not in it and both fit into
 * two segments together with `after`.
 */
export function smsText(deviceName: string, text: string, after = ''): string {
  const plain = text + after;
  if (deviceName === '' || text.includes(deviceName)) return plain;
  const named = `${deviceName}: ${plain}`;
  return countSegments(named) <= maxSegments ? named : plain;
}
