import type { Finding, Trouble } from './trouble.ts';

/** The bridge as its log lines name it. */
export type BridgeName = {
  connectorName: string;
  url: string;
  username?: string | undefined;
  filter: string;
};

/** The address without what may be secret in it: user name, password and query. */
export function withoutCredentials(url: string): string {
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}

/** One line: what is wrong between this connector and its broker, and what to do about it. */
export function advise(name: BridgeName, finding: Finding): string {
  const { connectorName } = name;
  const at = withoutCredentials(name.url);
  const user = name.username === undefined ? '' : ` ("${name.username}")`;
  const sentences: Record<Trouble, () => string> = {
    'refused-credentials': () =>
      `The broker refused the user name${user} or password of connector "${connectorName}": check broker.username and broker.passwordFile, and that the broker lets this user in.`,
    'refused-client-id': () =>
      `The broker refused the client identifier of connector "${connectorName}": check which identifiers it lets user${user} take.`,
    'protocol-version': () =>
      `The broker of connector "${connectorName}" does not speak MQTT 5, which a bridge needs: turn MQTT 5 on at the broker, or take one that speaks it.`,
    'shared-subscriptions': () =>
      `The broker refuses the shared subscription of connector "${connectorName}" (${name.filter}): allow $share at the broker, or set broker.shareName to null, so that one bridge at a time is connected.`,
    'refused-subscription': () =>
      `The broker does not let connector "${connectorName}" subscribe to ${name.filter}: let its user${user} read devices/+/up/# there.`,
    certificate: () => adviseOnCertificate(name, finding),
    tls: () =>
      `No TLS connection to the broker of connector "${connectorName}" at ${at}: check that this port speaks TLS, or take mqtt: or ws: in broker.url.`,
    unreachable: () =>
      `The broker of connector "${connectorName}" is not reached at ${at}: check broker.url, that the broker runs, and the network between.`,
    'no-answer': () =>
      `The broker of connector "${connectorName}" at ${at} does not answer: check that broker.url leads to an MQTT broker, that it is not overloaded, and the network between.`,
    'closed-at-connect': () =>
      `The broker of connector "${connectorName}" at ${at} closed the connection instead of answering: check that it speaks MQTT 5, and whether that port wants TLS (mqtts: or wss: in broker.url) or not.`,
    closed: () =>
      `The connection of connector "${connectorName}" to the broker at ${at} ended: the broker stopped or the network broke; it is tried again until it is back.`,
    'session-taken': () =>
      `Somebody else connected to the broker under the client identifier of connector "${connectorName}": give every installation at one broker a broker.username and broker.shareName of its own.`,
    'broker-unavailable': () =>
      `The broker of connector "${connectorName}" at ${at} says that it is not available, or is to be found elsewhere: look there.`,
    limit: () =>
      `The broker of connector "${connectorName}" at ${at} ended the connection at one of its limits: raise what it allows user${user} (messages under way, packet size, rate).`,
    'not-stored': () =>
      `Connector "${connectorName}" ended its connection to the broker at ${at}, so that what could not be stored is sent again: the line before says why.`,
    'protocol-error': () =>
      `What answers connector "${connectorName}" at ${at} does not keep to MQTT 5: check that broker.url leads to an MQTT 5 broker, and the log of that broker.`,
  };
  return sentences[finding.trouble]();
}

function adviseOnCertificate({ connectorName, url }: BridgeName, { code }: Finding): string {
  const { hostname } = new URL(url);
  const which = `The certificate of the broker of connector "${connectorName}"`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID' || code === 'HOSTNAME_MISMATCH')
    return `${which} is not for ${hostname}: take the name in the certificate for broker.url, or give the broker a certificate for ${hostname}.`;
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return `${which} is not valid at this time: renew it at the broker, and check the clocks of both machines.`;
  return `${which} is signed by nobody that this process trusts: set broker.caFile to the certificate (PEM) of the authority that signed it.`;
}
