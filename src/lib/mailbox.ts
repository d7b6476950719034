/**
 * What mails to an e-mail address are counted by, where anybody may have them sent. Most servers put what is sent to
 * "name+anything@host" into one mailbox (RFC 5233 calls that subaddressing).
 */
export const mailboxOf = (address: string) => address.toLowerCase().replace(/\+[^@]*(?=@)/, '');
